// Tries a study's report in headless Chromium, as a file and as `selvedge open` serves it: readings, isolated series,
// zoom, sorted tables, themes, keys, links over time, pages of tables, accessibility (axe), print, phones.
// `cargo xtask report` runs it: node report.mjs SELVEDGE RESULTS OTHER-RESULTS
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import { test, before, after } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [selvedge, results, other] = process.argv.slice(2);
const report = `${results}/report.html`;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let browser, server, url;

before(async () => {
  const options = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: options });
  server = spawn(selvedge, ["open", results, other], { stdio: ["ignore", "pipe", "ignore"] });
  url = await new Promise((found, failed) => {
    server.stdout.once("data", (line) => found(String(line).trim()));
    server.once("exit", (status) => failed(new Error(`selvedge open ended with ${status}`)));
  });
});
after(async () => {
  server?.kill("SIGINT");
  await browser?.close();
});

/** Opens a page on which an error of a script fails the test. */
const open = async (address, options = {}, errors = []) => {
  const page = await browser.newPage({ viewport: { width: 1180, height: 900 }, ...options });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
  await page.goto(address);
  if (options.javaScriptEnabled !== false) await page.waitForTimeout(300);
  page.check = () => assert.deepEqual(errors, [], "errors of scripts");
  return page;
};
/** Reads again, for five seconds at most, until what was read holds: pages are drawn when the browser has time. */
const until = async (read, holds, what) => {
  for (const end = Date.now() + 5_000; ; await new Promise((later) => setTimeout(later, 20))) {
    const value = await read();
    if (holds(value)) return value;
    assert.ok(Date.now() < end, `${what}: ${JSON.stringify(value)}`);
  }
};
const file = (options) => open(pathToFileURL(report).href, options);
const chartIn = (page, section) => page.locator(`#${section} .plot`).first();
const tip = (page) => page.locator("#tip").evaluate((tip) => (tip.hidden ? null : { title: tip.querySelector("b").textContent, lines: Object.fromEntries([...tip.querySelectorAll("span")].map((line) => [...line.children].map((part) => part.textContent))) }));
const over = async (page, chart, x, y) => {
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.locator(".u-over").boundingBox();
  return [box.x + box.width * x, box.y + box.height * y];
};
const leave = async (page) => {
  await page.mouse.move(5, 5);
  await until(() => tip(page), (shown) => shown === null, "a reading without a pointer");
};
/** Points at a place of a chart; returns what the page shows there. */
const reading = async (page, chart, x, y) => {
  await chart.scrollIntoViewIfNeeded();
  await leave(page);
  const [left, top] = await over(page, chart, x, y);
  // A page that still scrolls takes the reading away again.
  const moved = () => page.mouse.move(left - 1, top).then(() => page.mouse.move(left, top)).then(() => tip(page));
  return until(moved, (shown) => shown !== null, "no reading");
};
/** Returns how a chart is zoomed, once that holds. */
const zoom = (chart, holds) => until(() => chart.getAttribute("aria-description"), holds, "zoom");
const accessible = async (page, what) => {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const grave = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  assert.deepEqual(grave.map(({ id, nodes }) => `${what}: ${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" ")}`), []);
};

test("the page is small and fits screens and paper", async () => {
  assert.ok(statSync(report).size < 1_000_000, `${statSync(report).size} bytes`);
  for (const width of [360, 768, 1180, 2200]) {
    const page = await file({ viewport: { width, height: 900 } });
    // The folder of results may be anywhere.
    await page.locator(".facts code").first().evaluate((command) => { command.textContent += "/".padEnd(300, "folder"); });
    await until(() => page.evaluate(() => document.documentElement.scrollWidth), (wide) => wide <= width, `scrolls sideways at ${width}`);
    await page.screenshot({ path: `page-${width}.png`, fullPage: true });
    page.check();
    await page.close();
  }
  const page = await file();
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("#theme").isVisible(), false);
  assert.ok(await chartIn(page, "completion").locator("canvas").isVisible());
  await page.pdf({ path: "page.pdf", format: "A4", printBackground: true });
  page.check();
  await page.close();
});

test("axe finds nothing serious, light and dark, wide and narrow", async () => {
  for (const [colorScheme, width] of [["light", 1180], ["dark", 1180], ["light", 390]]) {
    const page = await file({ colorScheme, viewport: { width, height: 900 } });
    await page.evaluate(() => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
    await page.waitForTimeout(200);
    await accessible(page, `${colorScheme} ${width}`);
    page.check();
    await page.close();
  }
});

test("hover shows the values of the table", async () => {
  const page = await file();
  const chart = chartIn(page, "completion");
  const { title, lines } = await reading(page, chart, 0.5, 0.5);
  assert.equal(title, "50 % completed within");
  const table = await page.locator("#completion table").evaluate((table) => {
    const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === "50 %");
    return Object.fromEntries([...table.tBodies[0].rows].map((row) => [row.cells[0].textContent, row.cells[column].textContent]));
  });
  assert.ok(Object.keys(table).length > 1);
  assert.deepEqual(lines, table);
  await leave(page);
  page.check();
  await page.close();
});

test("a click isolates a series, and another shows all", async () => {
  const page = await file();
  const chart = chartIn(page, "completion"), keys = page.locator("#completion .key");
  const shown = async () => Object.keys((await reading(page, chart, 0.5, 0.5)).lines);
  const pressed = () => keys.evaluateAll((keys) => keys.map((key) => key.getAttribute("aria-pressed")));
  const all = await shown();
  const second = await keys.nth(1).textContent();
  await keys.nth(1).click();
  assert.deepEqual(await shown(), [second]);
  assert.equal((await pressed()).filter((is) => is === "true").length, 1);
  assert.match(await page.locator("#say").textContent(), /shown, 1 of/);
  await keys.nth(0).click({ modifiers: ["Shift"] });
  assert.equal((await shown()).length, 2);
  await keys.nth(1).click();
  await keys.nth(1).click();
  assert.deepEqual((await shown()).sort(), all.sort());
  page.check();
  await page.close();
});

test("a drag zooms the axis, a double click shows all", async () => {
  const page = await file();
  const chart = chartIn(page, "completion");
  await chart.scrollIntoViewIfNeeded();
  const before = await chart.locator("canvas").screenshot();
  const [[x0, y0], [x1, y1]] = [await over(page, chart, 0.3, 0.2), await over(page, chart, 0.6, 0.7)];
  await page.mouse.move(x0, y0);
  await page.mouse.down();
  await page.mouse.move(x1, y1, { steps: 5 });
  await page.mouse.up();
  await zoom(chart, (is) => /^zoomed to .* to .*, (29|30|31)\S* % to (79|80|81)\S* %$/.test(is));
  assert.notDeepEqual(await chart.locator("canvas").screenshot(), before);
  await page.mouse.dblclick(x0, y0);
  await zoom(chart, (is) => is === null);
  // Charts over time zoom together.
  const [one, two] = [page.locator("#queues .plot").first(), page.locator("#utilisation .plot").first()];
  const [[from, y], [to]] = [await over(page, one, 0.2, 0.5), await over(page, one, 0.5, 0.5)];
  await page.mouse.move(from, y);
  await page.mouse.down();
  await page.mouse.move(to, y, { steps: 5 });
  await page.mouse.up();
  const times = (text) => text.match(/^zoomed to (.*?),/)[1];
  const first = times(await zoom(one, (is) => is !== null));
  await zoom(two, (is) => is !== null && times(is) === first);
  page.check();
  await page.close();
});

test("keys read, zoom and reset a chart", async () => {
  const page = await file();
  const chart = chartIn(page, "completion"), said = () => page.locator("#say").textContent();
  await chart.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const first = await said();
  assert.match(first, /completed within: .*(us|ms)/);
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await said(), first);
  await page.keyboard.press("+");
  assert.ok(await chart.getAttribute("aria-description"));
  await page.keyboard.press("0");
  assert.equal(await chart.getAttribute("aria-description"), null);
  page.check();
  await page.close();
});

test("tables sort by their headings", async () => {
  const page = await file();
  await page.evaluate(() => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
  const heading = page.locator("#completion thead th").nth(3), button = heading.locator("button");
  const values = () => page.locator("#completion tbody tr").evaluateAll((rows) => rows.map((row) => Number(row.cells[3].dataset.v)));
  const original = await values(), up = [...original].sort((a, b) => a - b);
  await button.click();
  assert.equal(await heading.getAttribute("aria-sort"), "descending");
  assert.deepEqual(await values(), [...up].reverse());
  await button.press("Enter");
  assert.equal(await heading.getAttribute("aria-sort"), "ascending");
  assert.deepEqual(await values(), up);
  await button.click();
  assert.equal(await heading.getAttribute("aria-sort"), null);
  assert.deepEqual(await values(), original);
  page.check();
  await page.close();
});

test("the theme follows the system, or the reader", async () => {
  const page = await file({ colorScheme: "dark" });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await background();
  await page.locator("#theme").click();
  const light = await background();
  assert.notEqual(light, dark);
  assert.equal(await page.locator("#theme").textContent(), "Theme: light");
  await page.locator("#theme").click();
  assert.equal(await background(), dark);
  page.check();
  await page.close();
});

test("links over time follow the slider", async () => {
  const page = await file();
  const view = page.locator(".fabric"), slider = view.locator("input[type=range]"), when = () => view.locator("output").textContent();
  assert.match(await when(), /^0 to /);
  await view.scrollIntoViewIfNeeded();
  await slider.focus();
  await page.keyboard.press("End");
  assert.doesNotMatch(await when(), /^0 to /);
  await page.keyboard.press("Home");
  for (let n = 0; n < 5; n++) await page.keyboard.press("ArrowRight");
  await view.locator("label", { hasText: "queue" }).click();
  const link = view.locator("tbody button").first(), name = await link.textContent();
  await link.click();
  const detail = view.locator(".detail .plot");
  await detail.locator("canvas").waitFor();
  assert.match(await detail.getAttribute("aria-label"), new RegExp(`^${name}: queue over time`));
  await view.screenshot({ path: "links.png" });
  page.check();
  await page.close();
});

test("without scripts there are tables and words", async () => {
  const page = await file({ javaScriptEnabled: false });
  assert.equal(await page.locator(".plot").first().isVisible(), false);
  assert.ok(await page.locator("h1").isVisible() && await page.locator("#numbers table").first().isVisible());
  await page.locator("#completion summary").click();
  assert.ok(await page.locator("#completion table").isVisible());
  await page.close();
});

test("served reports have all rows, sorted and filtered on disk", async () => {
  const page = await open(`${url}0/`);
  const view = page.locator("#tables .browser"), status = view.locator(".note"), rows = view.locator("tbody tr");
  await rows.first().waitFor();
  const all = Number((await status.textContent()).match(/of ([\d,]+)$/)[1].replaceAll(",", ""));
  assert.ok(all > 100 && await rows.count() === 50, `${all} rows`);
  const column = async (name) => {
    const at = await view.locator("thead th").evaluateAll((heads, name) => heads.findIndex((head) => head.textContent === name), name);
    return rows.evaluateAll((rows, at) => rows.map((row) => row.cells[at].textContent.replaceAll(",", "")), at);
  };
  const answered = (act) => Promise.all([page.waitForResponse((answer) => answer.url().includes("/table/")), act()]).then(() => page.waitForTimeout(50));
  const heading = view.locator("thead button", { hasText: /^size_bytes$/ });
  await answered(() => heading.click());
  await answered(() => heading.click());
  const sizes = (await column("size_bytes")).map(Number);
  assert.deepEqual(sizes, [...sizes].sort((a, b) => b - a));
  await answered(() => view.locator("button", { hasText: "Next" }).click());
  assert.ok(Number((await column("size_bytes"))[0]) <= sizes.at(-1));
  await view.getByLabel("column").selectOption("size_bytes");
  await view.getByLabel("relation").selectOption("less");
  await view.getByLabel("value").fill(String(sizes[10]));
  await answered(() => view.locator("button", { hasText: "Add condition" }).click());
  assert.ok((await column("size_bytes")).every((size) => Number(size) < sizes[10]));
  assert.match(await status.textContent(), /, of [\d,]+ in all$/);
  await accessible(page, "served");
  page.check();
  // Links over time show what is in the table, with three digits.
  const fabric = page.locator(".fabric");
  await fabric.locator("label", { hasText: "queue" }).click();
  const { port, queue } = await fabric.locator("tbody tr").first().evaluate((row) => ({ port: row.cells[0].textContent, queue: row.cells[2].textContent }));
  const series = await fabric.locator("select option:checked").textContent(), [node, peer] = port.split(" → ");
  const filters = Object.entries({ series, node, peer }).map(([column, value]) => ({ column, is: "equal", value }));
  const found = await page.evaluate(async (query) => (await fetch("table/ports", { method: "POST", body: JSON.stringify(query) })).json(), { limit: 1000, filters });
  const at = found.columns.indexOf("egress_queue_bytes");
  const known = found.rows.map((row) => row[at]).map((bytes) => Number((bytes / (bytes >= 1e6 ? 1e6 : bytes >= 1e3 ? 1e3 : 1)).toPrecision(3)));
  assert.ok(known.includes(Number(queue.split(" ")[0])), `${port}: ${queue} is none of ${known.slice(0, 20)}`);
  await view.screenshot({ path: "tables.png" });
  // A wrong query says what is wrong.
  const errors = [];
  const wrong = await open(`${url}0/`, {}, errors);
  await wrong.locator("#tables .browser tbody tr").first().waitFor();
  const form = wrong.locator("#tables form");
  await form.getByLabel("column").selectOption("size_bytes");
  await form.getByLabel("value").fill("much");
  await form.locator("button", { hasText: "Add condition" }).click();
  await wrong.getByRole("alert").filter({ hasText: "is a number" }).waitFor();
  await wrong.close();
  await page.close();
});

test("several results stand side by side", async () => {
  const page = await open(url);
  assert.equal(await page.locator("iframe").count(), 2);
  assert.ok(await page.frameLocator("iframe").nth(1).locator("h1").isVisible());
  assert.match(await page.locator("#numbers table").first().textContent(), /B \/ A/);
  await accessible(page, "side by side");
  await page.screenshot({ path: "sides.png", fullPage: true });
  page.check();
  await page.close();
});

test("the server answers its own host, and knows no files", async () => {
  const ask = (path, options = {}) => new Promise((found, failed) => {
    const { hostname, port } = new URL(url);
    const request = http.request({ hostname, port, path, ...options }, (answer) => { answer.resume(); found(answer.statusCode); });
    request.on("error", failed);
    request.end(options.body);
  });
  assert.equal(await ask("/0/"), 200);
  assert.equal(await ask("/0/", { headers: { Host: "evil.example" } }), 403);
  assert.equal(await ask("/0/table/flows", { method: "POST", body: "{}", headers: { Origin: "http://evil.example" } }), 403);
  for (const path of ["/etc/passwd", "/0/../summary.json", "/0/summary.json", "/0/%2e%2e/", "/7/", "/0/table/flows", "//", "/0//"]) {
    assert.equal(await ask(path), 404, path);
  }
  for (const body of ["{", '{"limit":100000}', '{"sort":"nothing"}', '{"unknown":1}', "x".repeat(100000)]) {
    assert.equal(await ask("/0/table/flows", { method: "POST", body }), 400, body.slice(0, 30));
  }
  assert.equal(await ask("/0/table/..%2fsummary", { method: "POST", body: "{}" }), 404);
  assert.equal(await ask("/0/", { method: "DELETE" }), 405);
});
