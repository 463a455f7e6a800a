
// The network: one line for each direction of a link, coloured by what happened there in an interval of time.
const ALPHABET = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).filter((c) => !'"<\\'.includes(c)).join("");
/** Returns the number of a bin; `column` in results/src/fabric.rs says how they are written. */
const numberAt = (text, bin) => {
  if (2 * bin >= text.length) return 0;
  const code = ALPHABET.indexOf(text[2 * bin]) * 92 + ALPHABET.indexOf(text[2 * bin + 1]);
  return code < 100 ? code : ((code - 100) % 900 + 100) * 10 ** Math.floor((code - 100) / 900);
};
const QUANTITIES = {
  busy: { title: "utilisation", quantity: "share", unit: 1e-4 },
  queue: { title: "queue", quantity: "size", unit: 1 },
  paused: { title: "paused", quantity: "share", unit: 1e-4 },
  drops: { title: "drops", quantity: "plain", unit: 1 },
};
const svgElement = (name, attributes, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

class FabricView {
  constructor(place, fabric) {
    Object.assign(this, { place, fabric, run: fabric.runs.find((run) => run.bins > 0), what: "busy", bin: 0, port: null });
    this.most = {};
    for (const name of Object.keys(QUANTITIES)) {
      this.most[name] = QUANTITIES[name].quantity === "share" ? 1 : Math.max(0, ...fabric.runs.map((run) =>
        run[name].reduce((most, text) => { for (let bin = 0; 2 * bin < text.length; bin++) most = Math.max(most, numberAt(text, bin)); return most; }, 0)));
    }
    this.build();
    this.choose(this.run);
  }

  name(run) { return run.case ? `${run.case}: ${run.series}` : run.series; }
  value(name, port, bin, run = this.run) { return numberAt(run[name][port], bin) * QUANTITIES[name].unit; }
  text(name, value) { return label(QUANTITIES[name].quantity, value); }
  get network() { return this.fabric.networks[this.run.network]; }
  portName(port) { const [from, to] = this.network.ports[port]; return `${this.network.nodes[from][0]} → ${this.network.nodes[to][0]}`; }
  interval(bin) { return `${label("time", bin * this.run.bin_us)} to ${label("time", (bin + 1) * this.run.bin_us)}`; }

  build() {
    const runs = this.fabric.runs.filter((run) => run.bins > 0);
    this.select = element("select", {}, ...runs.map((run) => element("option", { textContent: this.name(run), value: this.fabric.runs.indexOf(run) })));
    this.select.addEventListener("change", () => this.choose(this.fabric.runs[Number(this.select.value)]));
    const radio = ([name, { title }]) => {
      const input = element("input", { type: "radio", name: "what", value: name, checked: name === this.what });
      input.addEventListener("change", () => { this.what = name; this.paint(); this.detail(); });
      return element("label", { className: "tool" }, input, ` ${title}`);
    };
    this.slider = element("input", { type: "range", min: 0, value: 0, step: 1 });
    this.slider.setAttribute("aria-label", "time");
    this.slider.addEventListener("input", () => { this.bin = Number(this.slider.value); this.paint(); });
    this.when = element("output", { className: "when" });
    this.play = element("button", { type: "button", className: "tool", textContent: "Play" });
    this.play.addEventListener("click", () => (this.timer ? this.stop() : this.start()));
    this.key = element("p", { className: "note scale" });
    this.picture = element("div", { className: "scroll" });
    this.body = element("tbody");
    const heads = ["port", ...Object.values(QUANTITIES).map(({ title }) => title)];
    const head = element("thead", {}, element("tr", {}, ...heads.map((text, i) => element("th", { textContent: text, className: i ? "n" : "", scope: "col" }))));
    this.caption = element("caption");
    this.curve = element("div", { className: "detail" });
    this.place.append(
      element("div", { className: "tools" }, element("label", {}, "Run ", this.select), element("fieldset", {}, element("legend", { className: "unseen", textContent: "Colour" }), ...Object.entries(QUANTITIES).map(radio))),
      element("div", { className: "tools time" }, this.play, this.slider, this.when),
      this.key, this.picture, element("div", { className: "scroll" }, element("table", {}, this.caption, head, this.body)), this.curve,
    );
    scrolls.observe(this.picture);
  }

  start() {
    this.play.textContent = "Stop";
    const step = matchMedia("(prefers-reduced-motion: reduce)").matches ? 1000 : 200;
    this.timer = setInterval(() => { this.bin = (this.bin + 1) % this.run.bins; this.slider.value = this.bin; this.paint(); }, step);
  }

  stop() { clearInterval(this.timer); this.timer = null; this.play.textContent = "Play"; }

  choose(run) {
    this.stop();
    const isNew = !this.lines || run.network !== this.run.network;
    this.run = run;
    this.bin = Math.min(this.bin, run.bins - 1);
    this.slider.max = run.bins - 1;
    this.slider.value = this.bin;
    if (isNew) { this.port = null; this.draw(); }
    this.paint();
    this.detail();
  }

  /** Places nodes by level, hosts below; a host stands near its switch. */
  draw() {
    const { nodes, ports } = this.network, width = 1040, level = 130;
    const levels = Math.max(...nodes.map(([, at]) => at)) + 1;
    const order = nodes.map(([name], i) => ({ i, name })).sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
    const x = new Array(nodes.length), y = nodes.map(([, at]) => 36 + (levels - 1 - at) * level);
    const spread = (row) => row.forEach(({ i }, at) => { x[i] = ((at + 0.5) / row.length) * width; });
    for (let at = levels - 1; at >= 0; at--) {
      const row = order.filter(({ i }) => nodes[i][1] === at);
      if (at === 0 && levels > 1) {
        const place = new Map(ports.filter(([from]) => nodes[from][1] === 0).map(([from, to]) => [from, x[to]]));
        row.sort((a, b) => (place.get(a.i) ?? 0) - (place.get(b.i) ?? 0));
      }
      spread(row);
    }
    const space = (at) => width / Math.max(1, nodes.filter(([, other]) => other === at).length);
    const longest = (at) => Math.max(...nodes.filter(([, other]) => other === at).map(([name]) => name.length));
    // Of very large networks, only links between switches are drawn; the table has all.
    const withHosts = ports.length <= 6000;
    this.lines = ports.map(([from, to], port) => {
      if (!withHosts && (nodes[from][1] === 0 || nodes[to][1] === 0)) return null;
      const [dx, dy] = [x[to] - x[from], y[to] - y[from]], length = Math.hypot(dx, dy) || 1;
      // On the right of its way, so that both directions are visible.
      const [ax, ay] = [(-dy / length) * 1.6, (dx / length) * 1.6];
      const bend = dy === 0 ? Math.min(60, Math.abs(dx) / 3) * Math.sign(dx) : 0;
      const d = `M${(x[from] + ax).toFixed(1)} ${(y[from] + ay).toFixed(1)}Q${((x[from] + x[to]) / 2 + ax).toFixed(1)} ${((y[from] + y[to]) / 2 + ay - bend).toFixed(1)} ${(x[to] + ax).toFixed(1)} ${(y[to] + ay).toFixed(1)}`;
      return svgElement("path", { d, "data-port": port });
    });
    const marks = nodes.map(([name, at], i) => {
      const room = space(at), size = clamp(room / 3, 1.5, 7);
      const mark = at === 0 ? svgElement("circle", { cx: x[i], cy: y[i], r: size * 0.7 }) : svgElement("rect", { x: x[i] - size, y: y[i] - size, width: 2 * size, height: 2 * size, rx: 2 });
      if (room < longest(at) * 6.5) return mark;
      return svgElement("g", {}, mark, svgElement("text", { x: x[i], y: at === 0 ? y[i] + 18 : y[i] - 12, "text-anchor": "middle" }, name));
    });
    const svg = svgElement("svg", { viewBox: `0 0 ${width} ${(levels - 1) * level + 66}`, class: "network wide", role: "img", "aria-label": "The network; the table below has its busiest ports" },
      svgElement("g", { class: "links" }, ...this.lines.filter((line) => line)), svgElement("g", { class: "nodes" }, ...marks));
    svg.addEventListener("pointermove", (event) => {
      const port = event.target.dataset?.port;
      if (port === undefined) { hideTip(); return; }
      showTip(event.clientX, event.clientY, this.portName(port), Object.entries(QUANTITIES).map(([name, { title }]) => [title, this.text(name, this.value(name, port, this.bin))]));
    });
    svg.addEventListener("pointerleave", hideTip);
    svg.addEventListener("click", (event) => { if (event.target.dataset?.port !== undefined) this.pick(Number(event.target.dataset.port)); });
    this.picture.replaceChildren(svg);
  }

  /** Colours the links for the present interval, and lists the ports with the largest values. */
  paint() {
    const most = this.most[this.what] || 1, { title } = QUANTITIES[this.what];
    const values = this.lines.map((line, port) => {
      const value = this.value(this.what, port, this.bin), part = value / most;
      if (!line) return { port, value };
      line.style.stroke = value === 0 ? "" : `color-mix(in oklab, var(--heat-ink) ${(18 + 82 * part).toFixed(0)}%, var(--faint))`;
      line.style.strokeWidth = value === 0 ? "" : (1.4 + 2.6 * part).toFixed(1);
      line.classList.toggle("picked", port === this.port);
      return { port, value };
    });
    const interval = this.interval(this.bin);
    this.when.textContent = interval;
    this.slider.setAttribute("aria-valuetext", interval);
    this.key.replaceChildren(`${title}: 0 `, element("span", { className: "ramp" }), ` ${this.text(this.what, most)}`);
    const worst = values.filter(({ value }) => value > 0).sort((a, b) => b.value - a.value).slice(0, 8);
    this.caption.textContent = worst.length ? `Ports with the largest ${title}, ${interval}` : `No ${title} at any port, ${interval}`;
    this.body.replaceChildren(...worst.map(({ port }) => {
      const button = element("button", { type: "button", className: "link", textContent: this.portName(port) });
      button.addEventListener("click", () => this.pick(port));
      const cells = Object.keys(QUANTITIES).map((name) => element("td", { className: "n", textContent: this.text(name, this.value(name, port, this.bin)) }));
      return element("tr", {}, element("th", { scope: "row" }, button), ...cells);
    }));
  }

  pick(port) {
    this.port = this.port === port ? null : port;
    this.paint();
    this.detail();
    say(this.port === null ? "no port selected" : `${this.portName(port)} over time, below the table`);
  }

  /** Draws the selected port over time, in all runs on the same network. */
  detail() {
    if (this.chart) charts.splice(charts.indexOf(this.chart), 1);
    this.chart?.plot?.destroy();
    this.chart = null;
    this.curve.replaceChildren();
    if (this.port === null) return;
    const { title, quantity } = QUANTITIES[this.what];
    const runs = this.fabric.runs.filter((run) => run.network === this.run.network && run.case === this.run.case && run.bins > 0);
    const curves = runs.map((run) => {
      const bins = Array.from({ length: run.bins }, (_, bin) => bin);
      return { name: run.series, ink: run.ink, dash: "", x: bins.map((bin) => (bin + 0.5) * run.bin_us), y: bins.map((bin) => this.value(this.what, this.port, bin, run)) };
    });
    const end = Math.max(...runs.map((run) => run.bins * run.bin_us)), most = quantity === "share" ? 1 : 1.05 * Math.max(1, ...curves.flatMap((curve) => curve.y));
    const place = element("div", { className: "plot" });
    place.style.height = "200px";
    place.setAttribute("aria-label", `${this.portName(this.port)}: ${title} over time`);
    this.curve.append(element("h3", { textContent: `${this.portName(this.port)}: ${title}` }), place);
    this.chart = new Chart(place, { x: { title: "simulated time", quantity: "time", log: false, low: 0, high: end }, y: { title: "", quantity, log: false, low: 0, high: most }, shares_x: true, curves });
    charts.push(this.chart);
  }
}

const fabricPlace = $(".fabric");
const showFabric = (fabric) => {
  if (fabric?.runs.some((run) => run.bins > 0)) new FabricView(fabricPlace, fabric);
  else fabricPlace.textContent = "Too many ports to show; ports.parquet has them.";
};
if (fabricPlace && data.fabric?.runs.length) showFabric(data.fabric);
// `selvedge open` reads from disk what is too much for the page.
else if (fabricPlace && location.protocol.startsWith("http")) fetch("fabric.json").then((answer) => answer.json()).then(showFabric);
