"use strict";
// Two comforts; everything is drawn without them. Hide a series, and read values under the pointer.
(() => {
  for (const key of document.querySelectorAll(".key")) {
    key.addEventListener("click", () => {
      const series = key.dataset.series;
      const hidden = document.body.classList.toggle("off-" + series);
      for (const same of document.querySelectorAll(`.key[data-series="${series}"]`)) {
        same.setAttribute("aria-pressed", String(!hidden));
      }
    });
  }

  const scaled = (value, steps) => {
    let step = steps[0];
    for (const next of steps) if (value >= next[0]) step = next;
    return `${Number((value / step[0]).toPrecision(3))} ${step[1]}`;
  };
  const print = {
    time: (v) => scaled(v, [[1e-3, "ns"], [1, "us"], [1e3, "ms"], [1e6, "s"]]),
    size: (v) => (v < 1 ? "0" : scaled(v, [[1, "B"], [1e3, "KB"], [1e6, "MB"], [1e9, "GB"]])),
    plain: (v) => String(Number(v.toPrecision(3))),
    share: (v) => `${Number((v * 100).toPrecision(3))} %`,
    tail: (v) => `${Number((100 - v * 100).toFixed(3))} %`,
  };
  // "log,px at low,px at high,low,high,quantity"
  const axis = (text) => {
    const parts = text.split(",");
    const [log, p0, p1, low, high] = parts.map(Number);
    const value = (p) => {
      const share = (p - p0) / (p1 - p0);
      return log ? low * Math.pow(high / low, share) : low + (high - low) * share;
    };
    return { p0, p1, value, print: print[parts[5]] };
  };
  const tip = document.getElementById("tip");
  const show = (event, title, lines) => {
    tip.replaceChildren();
    const head = document.createElement("b");
    head.textContent = title;
    tip.append(head);
    for (const [name, value] of lines) {
      const line = document.createElement("span");
      for (const text of [name, value]) line.append(Object.assign(document.createElement("i"), { textContent: text, style: "font-style:normal" }));
      tip.append(line);
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = event.clientX + 16 + box.width > innerWidth ? event.clientX - 16 - box.width : event.clientX + 16;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - box.height - 4)}px`;
  };
  const hide = () => { tip.hidden = true; };
  const place = (svg, event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());

  for (const svg of document.querySelectorAll(".plot")) {
    const x = axis(svg.dataset.x), y = axis(svg.dataset.y), cross = svg.querySelector(".cross");
    const curves = [...svg.querySelectorAll(".curve")].map((path) => {
      const numbers = path.getAttribute("d").slice(1).split(" ").map(Number);
      const points = [];
      for (let i = 0; i + 1 < numbers.length; i += 2) points.push([numbers[i], numbers[i + 1]]);
      return { path, points };
    });
    svg.addEventListener("pointermove", (event) => {
      const at = place(svg, event).x;
      if (at < x.p0 || at > x.p1) { cross.setAttribute("d", ""); hide(); return; }
      const lines = [];
      for (const { path, points } of curves) {
        if (getComputedStyle(path).display === "none" || at < points[0][0] || at > points[points.length - 1][0]) continue;
        const next = Math.max(1, points.findIndex((point) => point[0] >= at));
        const a = points[next - 1], b = points[next] || a;
        const share = b[0] > a[0] ? (at - a[0]) / (b[0] - a[0]) : 1;
        const py = a[1] + (b[1] - a[1]) * share;
        lines.push([py, path.dataset.name, y.print(y.value(py))]);
      }
      cross.setAttribute("d", `M${at} ${y.p0}V${y.p1}`);
      lines.sort((a, b) => a[0] - b[0]);
      show(event, x.print(x.value(at)), lines.map((line) => line.slice(1)));
    });
    svg.addEventListener("pointerleave", () => { cross.setAttribute("d", ""); hide(); });
  }

  for (const svg of document.querySelectorAll(".heat")) {
    const [left, top, width, height, bin] = svg.dataset.cell.split(",").map(Number);
    const shades = svg.dataset.shades.split(",");
    const rows = svg.dataset.rows.split(";").map((row) => row.split("|"));
    svg.addEventListener("pointermove", (event) => {
      const at = place(svg, event);
      const column = Math.floor((at.x - left) / width), row = rows[Math.floor((at.y - top) / height)];
      const level = row && row[1][column];
      if (level === undefined || column < 0) { hide(); return; }
      const share = level === "0" ? "hardly paused" : `paused ${shades[level - 1]} or more`;
      show(event, row[0].replace("⇠", "paused by"), [[`${print.time(column * bin)} to ${print.time((column + 1) * bin)}`, share]]);
    });
    svg.addEventListener("pointerleave", hide);
  }
})();
