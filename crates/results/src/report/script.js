// Everything that moves in a report: readings, zoom, isolated series, sorted tables, the theme. The page is complete
// without it but for curves, whose values are in tables below them.
const $ = (query, root = document) => root.querySelector(query);
const all = (query, root = document) => [...root.querySelectorAll(query)];
const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
const data = JSON.parse($("#data").textContent);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
/** Tells a screen reader. */
const say = (text) => { $("#say").textContent = text; };

// Numbers as `Quantity::label` writes them.
const digits = (value, wanted) => {
  if (value === 0) return "0";
  const decimals = clamp(wanted - 1 - Math.floor(Math.log10(Math.abs(value))), 0, 9);
  const [whole, fraction] = value.toFixed(Number.isInteger(value) ? 0 : decimals).split(".");
  const rest = (fraction ?? "").replace(/0+$/, "");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest && "." + rest);
};
const scaled = (steps) => (value) => {
  const [size, unit] = steps.findLast(([size]) => value >= size * 0.999999) ?? steps[0];
  return `${digits(value / size, 3)} ${unit}`;
};
const print = {
  time: scaled([[1e-3, "ns"], [1, "us"], [1e3, "ms"], [1e6, "s"]]),
  size: scaled([[1, "B"], [1e3, "KB"], [1e6, "MB"], [1e9, "GB"]]),
  plain: (value) => digits(value, 3),
  share: (value) => `${digits(value * 100, 3)} %`,
  tail: (value) => `${digits(100 - value * 100, 5)} %`,
};
const label = (quantity, value) => (value === 0 ? "0" : print[quantity](value));

// Colours, as the page's style has them in its present theme.
const probe = element("span", { hidden: true });
document.body.append(probe);
const colors = new Map();
const color = (name) => {
  if (!colors.has(name)) {
    probe.style.color = `var(--${name})`;
    colors.set(name, getComputedStyle(probe).color);
  }
  return colors.get(name);
};
const charts = [];
const redraw = () => {
  colors.clear();
  for (const chart of charts) chart.plot?.redraw(false, true);
};
const theme = $("#theme");
const themes = ["auto", "light", "dark"];
// A page in a file may have no storage.
const stored = (value) => { try { return value ? localStorage.setItem("theme", value) : localStorage.getItem("theme"); } catch { return null; } };
const setTheme = (name) => {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  theme.dataset.at = name;
  theme.textContent = `Theme: ${name}`;
  redraw();
};
theme.hidden = false;
theme.addEventListener("click", () => {
  const next = themes[(themes.indexOf(theme.dataset.at) + 1) % themes.length];
  stored(next);
  setTheme(next);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
matchMedia("print").addEventListener("change", redraw);

// Readings beside the pointer.
const tip = $("#tip");
const showTip = (x, y, title, lines) => {
  const row = ([name, value]) => element("span", {}, element("i", { textContent: name }), element("i", { textContent: value }));
  tip.replaceChildren(element("b", { textContent: title }), ...lines.map(row));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16)}px`;
  tip.style.top = `${clamp(y + 14, 4, innerHeight - box.height - 4)}px`;
};
const hideTip = () => { tip.hidden = true; };
addEventListener("scroll", hideTip, { passive: true });
for (const title of all("svg title")) {
  const mark = title.parentElement, text = title.textContent;
  title.remove();
  mark.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, text, []));
  mark.addEventListener("pointerleave", hideTip);
}

// Legends: a click shows one series alone, and a second click all of them again.
const keys = all(".key[data-series]");
const inks = [...new Set(keys.map((key) => Number(key.dataset.series)))];
let shown = new Set(inks);
const showSeries = (next) => {
  shown = next.size > 0 ? next : new Set(inks);
  for (const ink of inks) document.body.classList.toggle(`off-${ink}`, !shown.has(ink));
  for (const key of keys) key.setAttribute("aria-pressed", String(shown.has(Number(key.dataset.series))));
  for (const chart of charts) chart.showSeries();
};
for (const key of keys) {
  const ink = Number(key.dataset.series);
  key.addEventListener("click", (event) => {
    if (event.shiftKey || event.ctrlKey || event.metaKey) showSeries(shown.symmetricDifference(new Set([ink])));
    else showSeries(shown.size === 1 && shown.has(ink) ? new Set(inks) : new Set([ink]));
    say(shown.size === inks.length ? "all series shown" : `${key.textContent} ${shown.has(ink) ? "shown" : "hidden"}, ${shown.size} of ${inks.length} series`);
  });
  key.title = "click: this series alone, or all again; with Shift: show or hide it";
}

// Ticks as `Axis::ticks` chooses them.
const niceStep = (span) => {
  const power = 10 ** Math.floor(Math.log10(span / 4));
  return ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= (span / 4) * 0.999) ?? 10) * power;
};
const ticks = (low, high, log) => {
  if (log) {
    const decades = Math.log10(high / low);
    const steps = decades < 1.6 ? [1, 2, 5] : decades < 2.6 ? [1, 3] : [1];
    const stride = Math.max(Math.ceil(decades / 8), 1);
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += stride) {
      for (const step of steps) {
        const value = Number(`${step}e${power}`);
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) found.push(value);
      }
    }
    if (found.length > 1) return found;
  }
  const step = niceStep(high - low), found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-6; at++) found.push(at * step);
  return found;
};

/** A chart of one or several curves, drawn by uPlot. */
class Chart {
  constructor(place, spec) {
    Object.assign(this, { place, spec, plot: null, row: null });
    // Curves of shares are read level by level, others along their horizontal axis.
    this.byLevel = !spec.shares_x && ["share", "tail"].includes(spec.y.quantity);
    this.all = { x: [spec.x.low, spec.x.high].sort((a, b) => a - b), y: [spec.y.low, spec.y.high].sort((a, b) => a - b) };
    this.view = { ...this.all };
    place.tabIndex = 0;
    place.setAttribute("role", "application");
    place.setAttribute("aria-roledescription", "chart");
    place.setAttribute("aria-label", `${place.getAttribute("aria-label")}. Arrow keys read values, + and - zoom, 0 shows all.`);
    if (spec.y.title) place.append(element("span", { className: "y-title", textContent: spec.y.title }));
    place.addEventListener("keydown", (event) => this.onKey(event));
    place.addEventListener("blur", () => { this.row = null; hideTip(); });
    // A place that is folded away has no width, until it is unfolded.
    new ResizeObserver(() => {
      const width = place.clientWidth, height = place.clientHeight;
      if (width === 0 || matchMedia("print").matches) return;
      if (this.plot) this.plot.setSize({ width, height });
      else this.draw(width, height);
    }).observe(place);
  }

  draw(width, height) {
    const { x, y, curves } = this.spec;
    // One list of positions for all curves. A position that a curve has several times is there as often.
    const most = new Map();
    for (const curve of curves) {
      const times = new Map();
      for (const value of curve.x) {
        times.set(value, (times.get(value) ?? 0) + 1);
        most.set(value, Math.max(most.get(value) ?? 0, times.get(value)));
      }
    }
    const positions = [], first = new Map();
    for (const value of [...most.keys()].sort((a, b) => a - b)) {
      first.set(value, positions.length);
      for (let n = most.get(value); n > 0; n--) positions.push(value);
    }
    const columns = [positions], series = [{}], bands = [];
    const add = (values, at, options) => {
      const column = new Array(positions.length);
      values.forEach((value, i) => { column[at[i]] = value; });
      columns.push(column);
      series.push({ scale: "y", spanGaps: true, points: { show: false }, ...options });
    };
    for (const curve of curves) {
      let before, again = 0;
      curve.at = curve.x.map((value) => {
        again = value === before ? again + 1 : 0;
        before = value;
        return first.get(value) + again;
      });
      curve.column = columns.length;
      add(curve.y, curve.at, {
        stroke: () => color(`s${curve.ink}`),
        width: 2,
        dash: curve.dash ? curve.dash.split(" ").map(Number) : undefined,
        points: { show: curve.x.length === 1, size: 7, fill: () => color(`s${curve.ink}`) },
      });
      if (curve.low) {
        add(curve.high, curve.at, { width: 0 });
        add(curve.low, curve.at, { width: 0 });
        const fill = () => color(`s${curve.ink}`).replace("rgb(", "rgba(").replace(")", ", 0.16)");
        bands.push({ series: [curve.column + 1, curve.column + 2], fill });
      }
    }
    const axis = (name, spec, more) => ({
      scale: name,
      font: '11.5px system-ui, "Liberation Sans", sans-serif',
      stroke: () => color("soft"),
      grid: { stroke: () => color("line"), width: 1 },
      ticks: { show: false },
      splits: (_, __, low, high) => ticks(low, high, spec.log),
      filter: (_, splits) => splits,
      values: (_, splits) => splits.map((value) => label(spec.quantity, value)),
      ...more,
    });
    const scale = (name, spec) => ({ time: false, distr: spec.log ? 3 : 1, dir: spec.low > spec.high ? -1 : 1, range: () => this.view[name] });
    const titled = x.title ? { label: x.title, labelFont: '600 11.5px system-ui, "Liberation Sans", sans-serif', labelSize: 16, labelGap: 2 } : {};
    this.plot = new uPlot({
      width, height, bands, series,
      padding: [y.title ? 24 : 10, 22, 0, 0],
      legend: { show: false },
      scales: { x: scale("x", x), y: scale("y", y) },
      axes: [axis("x", x, { size: 24, gap: 4, space: 46, ...titled }), axis("y", y, { size: 58, gap: 6 })],
      cursor: {
        drag: { x: true, y: true, uni: 24, setScale: false },
        dataIdx: (_, column) => this.reading(column),
        points: { size: 7 },
        bind: { dblclick: () => () => this.zoom(this.all) },
      },
      hooks: {
        draw: [() => this.drawBounds()],
        setCursor: [() => this.onCursor()],
        setSelect: [(plot) => this.onSelect(plot)],
      },
    }, columns, this.place);
    this.showSeries();
    // Clean while nobody points at it, also for those who read the DOM.
    this.plot.over.addEventListener("pointerleave", hideTip);
  }

  visible() { return this.spec.curves.filter((curve) => shown.has(curve.ink)); }

  showSeries() {
    if (!this.plot) return;
    this.plot.batch(() => {
      for (const curve of this.spec.curves) {
        const columns = curve.low ? [0, 1, 2] : [0];
        for (const more of columns) this.plot.setSeries(curve.column + more, { show: shown.has(curve.ink) });
      }
    });
  }

  /** Index of the point of a curve that is nearest to the pointer; null beyond its ends. */
  nearest(curve) {
    const [values, spec, scale, at] = this.byLevel ? [curve.y, this.spec.y, "y", this.plot.cursor.top] : [curve.x, this.spec.x, "x", this.plot.cursor.left];
    if (!(at >= 0)) return null;
    const place = (value) => (spec.log ? Math.log(value) : value);
    const wanted = place(this.plot.posToVal(at, scale));
    let best = 0;
    values.forEach((value, i) => { if (Math.abs(place(value) - wanted) < Math.abs(place(values[best]) - wanted)) best = i; });
    const neighbour = values[best === 0 ? 1 : best - 1] ?? values[best];
    const reach = Math.max(Math.abs(place(neighbour) - place(values[best])), Math.abs(place(spec.high) - place(spec.low)) / 60);
    return Math.abs(place(values[best]) - wanted) > reach ? null : best;
  }

  /** Index among all positions of what is read of the curve in a column. */
  reading(column) {
    const curve = this.spec.curves.find((curve) => curve.column === column);
    const at = curve ? this.nearest(curve) : null;
    return at === null ? null : curve.at[at];
  }

  readings() {
    const { x, y } = this.spec;
    const found = this.visible().map((curve) => ({ curve, at: this.nearest(curve) })).filter(({ at }) => at !== null);
    if (found.length === 0) return null;
    const value = ({ curve, at }) => (this.byLevel ? curve.x[at] : curve.y[at]);
    const bound = ({ curve, at }) => (curve.bounds?.includes(at) ? "≥ " : "");
    const band = ({ curve, at }) => (curve.low && curve.low[at] < curve.high[at] ? ` (${label(y.quantity, curve.low[at])}–${label(y.quantity, curve.high[at])})` : "");
    const read = this.byLevel ? x : y;
    const { curve, at } = found[0];
    const title = this.byLevel ? `${label(y.quantity, curve.y[at])} completed within` : label(x.quantity, curve.x[at]);
    found.sort((a, b) => (this.byLevel ? value(a) - value(b) : value(b) - value(a)));
    return { title, lines: found.map((one) => [one.curve.name, bound(one) + label(read.quantity, value(one)) + band(one)]) };
  }

  onCursor() {
    const { left, top } = this.plot.cursor;
    const found = left >= 0 ? this.readings() : null;
    if (!found) { hideTip(); return; }
    const box = this.plot.over.getBoundingClientRect();
    showTip(box.left + left, box.top + top, found.title, found.lines);
  }

  onSelect(plot) {
    const { left, top, width, height } = plot.select;
    if (width < 3 && height < 3) return;
    const ends = (from, size, full, scale) => (size === 0 || size >= full - 1 ? this.view[scale] : [plot.posToVal(from, scale), plot.posToVal(from + size, scale)].sort((a, b) => a - b));
    const over = plot.over.getBoundingClientRect();
    this.zoom({ x: ends(left, width, over.width, "x"), y: ends(top, height, over.height, "y") });
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  zoom(view) {
    const together = this.spec.shares_x ? charts.filter((chart) => chart.spec.shares_x) : [this];
    for (const chart of together) chart.setView(chart === this ? view : { ...chart.view, x: view.x });
    if (view === this.all) for (const chart of together) chart.setView(chart.all);
  }

  setView(view) {
    this.view = view;
    const isAll = ["x", "y"].every((name) => view[name].every((end, i) => end === this.all[name][i]));
    this.place.toggleAttribute("data-zoomed", !isAll);
    if (isAll) this.place.removeAttribute("aria-description");
    else this.place.setAttribute("aria-description", `zoomed to ${this.viewText()}`);
    this.plot?.batch(() => {
      for (const name of ["x", "y"]) this.plot.setScale(name, { min: view[name][0], max: view[name][1] });
    });
  }

  zoomBy(factor) {
    const ends = (name) => {
      const { log } = this.spec[name], to = log ? Math.log : (v) => v, back = log ? Math.exp : (v) => v;
      const [low, high] = this.view[name].map(to), cursor = this.plot.cursor[name === "x" ? "left" : "top"];
      const at = cursor >= 0 ? clamp(to(this.plot.posToVal(cursor, name)), low, high) : (low + high) / 2;
      return [at - (at - low) * factor, at + (high - at) * factor].map((end, i) => clamp(back(end), ...this.all[name]));
    };
    this.zoom({ x: ends("x"), y: this.byLevel ? ends("y") : this.view.y });
    say(this.viewText());
  }

  viewText() {
    return ["x", "y"].map((name) => this.view[name].map((end) => label(this.spec[name].quantity, end)).join(" to ")).join(", ");
  }

  onKey(event) {
    if (!this.plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (step) this.step(step);
    else if (event.key === "+" || event.key === "=") this.zoomBy(0.5);
    else if (event.key === "-") this.zoomBy(2);
    else if (event.key === "0" || event.key === "Escape") { this.zoom(this.all); say("all shown"); }
    else return;
    event.preventDefault();
  }

  /** Moves the cursor along the longest curve, within the view. */
  step(by) {
    const curve = this.visible().reduce((a, b) => (b.x.length > (a?.x.length ?? 0) ? b : a), null);
    if (!curve) return;
    const inside = (i) => curve.x[i] >= this.view.x[0] && curve.x[i] <= this.view.x[1] && curve.y[i] >= this.view.y[0] && curve.y[i] <= this.view.y[1];
    // Along a curve of many points, a step is a fiftieth.
    const stride = Math.max(1, Math.floor(curve.x.length / 50));
    let row = this.row === null ? (by > 0 ? 0 : curve.x.length - 1) : this.row + by * stride;
    while (row >= 0 && row < curve.x.length && !inside(row)) row += by;
    if (row < 0 || row >= curve.x.length) return;
    this.row = row;
    this.plot.setCursor({ left: this.plot.valToPos(curve.x[row], "x"), top: this.plot.valToPos(curve.y[row], "y") });
    const found = this.readings();
    if (found) say(`${found.title}: ${found.lines.map((line) => line.join(" ")).join(", ")}`);
  }

  /** Draws arrowheads upwards at points that are lower bounds. */
  drawBounds() {
    const { ctx } = this.plot, size = uPlot.pxRatio * 4;
    ctx.save();
    for (const curve of this.visible()) {
      ctx.fillStyle = color(`s${curve.ink}`);
      for (const i of curve.bounds ?? []) {
        const x = this.plot.valToPos(curve.x[i], "x", true), y = this.plot.valToPos(curve.y[i], "y", true);
        ctx.beginPath();
        ctx.moveTo(x - size, y);
        ctx.lineTo(x, y - 2 * size);
        ctx.lineTo(x + size, y);
        ctx.fill();
      }
    }
    ctx.restore();
  }
}
for (const place of all(".plot[data-chart]")) charts.push(new Chart(place, data.charts[Number(place.dataset.chart)]));

// Maps of pauses: "left,top,width of a cell,height of a row,microseconds of a bin".
for (const svg of all(".heat")) {
  const [left, top, width, height, bin] = svg.dataset.cell.split(",").map(Number);
  const rows = svg.dataset.rows.split(";").map((row) => row.split("|"));
  svg.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const column = Math.floor((at.x - left) / width), row = rows[Math.floor((at.y - top) / height)];
    const share = row?.[1].split(" ")[column];
    if (share === undefined || column < 0) { hideTip(); return; }
    const when = `${label("time", column * bin)} to ${label("time", (column + 1) * bin)}`;
    showTip(event.clientX, event.clientY, row[0].replace("⇠", "paused by"), [[when, `paused ${label("share", share / 1000)}`]]);
  });
  svg.addEventListener("pointerleave", hideTip);
}

// Tables sort by the column of a heading: down, up, as they were.
const sortable = (table) => {
  const body = table.tBodies[0], original = [...body.rows];
  const key = (row, column) => {
    const cell = row.cells[column], text = cell?.textContent.trim() ?? "";
    const number = cell?.dataset.v ? Number(cell.dataset.v) : parseFloat(text.replace(/^[≥≤] /, "").replaceAll(",", ""));
    return { text, number, missing: /^[-–]?$/.test(text) };
  };
  const compare = (a, b) => (Number.isNaN(a.number) || Number.isNaN(b.number) ? a.text.localeCompare(b.text, "en", { numeric: true }) : a.number - b.number);
  all("thead th", table).forEach((head) => {
    const button = element("button", { type: "button", className: "sort" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const column = head.cellIndex, before = head.getAttribute("aria-sort");
      const [first, second] = head.classList.contains("n") ? ["descending", "ascending"] : ["ascending", "descending"];
      const order = before === first ? second : before === second ? null : first;
      for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
      const rows = original.map((row) => ({ row, key: key(row, column) }));
      const sign = order === "descending" ? -1 : 1;
      // What is missing comes last either way.
      if (order) rows.sort((a, b) => a.key.missing - b.key.missing || sign * compare(a.key, b.key));
      if (order) head.setAttribute("aria-sort", order);
      body.append(...rows.map(({ row }) => row));
      say(order ? `sorted by ${button.textContent}, ${order}` : "in its first order");
    });
  });
};
all("table.sortable").forEach(sortable);

// What scrolls can be scrolled by keys.
const scrolls = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) {
      target.tabIndex = 0;
      // A figure has a role and a name already.
      if (target.localName !== "figure") {
        target.setAttribute("role", "group");
        target.setAttribute("aria-label", "scrolls sideways");
      }
    } else {
      target.removeAttribute("tabindex");
      target.removeAttribute("role");
      target.removeAttribute("aria-label");
    }
  }
});
all(".scroll, .tables > figure, pre").forEach((box) => scrolls.observe(box));

setTheme(themes.includes(stored()) ? stored() : "auto");
