// The tables of a results folder, of which `selvedge open` reads pages from disk.
const make = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
const RELATIONS = { equal: "=", not: "≠", less: "<", greater: ">", contains: "contains" };
const place = document.querySelector(".browser");
const query = { table: "flows", offset: 0, limit: 50, sort: null, descending: false, filters: [] };
const announce = (text) => { document.getElementById("say")?.replaceChildren(text); };

const option = (value, text = value) => make("option", { value, textContent: text });
const choice = make("select", {}, ...["flows", "ports", "links"].map((name) => option(name)));
choice.addEventListener("change", () => { Object.assign(query, { table: choice.value, offset: 0, sort: null, filters: [] }); load(); });
const column = make("select", { ariaLabel: "column" });
const relation = make("select", { ariaLabel: "relation" }, ...Object.entries(RELATIONS).map(([value, text]) => option(value, text)));
const value = make("input", { type: "text", size: 14, ariaLabel: "value", autocomplete: "off" });
const form = make("form", { className: "tools" }, make("label", {}, "Table ", choice), make("span", {}, "where "), column, relation, value, make("button", { type: "submit", className: "tool", textContent: "Add condition" }));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  query.filters.push({ column: column.value, is: relation.value, value: value.value });
  query.offset = 0;
  load();
});
const conditions = make("div", { className: "tools" });
const problem = make("p", { className: "problem", role: "alert" });
const status = make("span", { className: "note" });
const page = (text, by) => {
  const button = make("button", { type: "button", className: "tool", textContent: text });
  button.addEventListener("click", () => { query.offset = Math.max(0, query.offset + by * query.limit); load(); });
  return button;
};
const before = page("Previous", -1), after = page("Next", 1);
const head = make("thead"), body = make("tbody");
const table = make("table", {}, make("caption", { className: "unseen", textContent: "Rows of the chosen table" }), head, body);
const scroll = make("div", { className: "scroll", tabIndex: 0 }, table);
scroll.setAttribute("role", "group");
scroll.setAttribute("aria-label", "rows, scrolls sideways");
place.append(form, conditions, problem, scroll, make("div", { className: "tools" }, before, after, status));

const show = (answer) => {
  const chosen = column.value;
  column.replaceChildren(...answer.columns.map((name) => option(name)));
  if (answer.columns.includes(chosen)) column.value = chosen;
  head.replaceChildren(make("tr", {}, ...answer.columns.map((name) => {
    const cell = make("th", { scope: "col" }), button = make("button", { type: "button", className: "sort", textContent: name });
    if (query.sort === name) cell.setAttribute("aria-sort", query.descending ? "descending" : "ascending");
    button.addEventListener("click", () => {
      if (query.sort !== name) Object.assign(query, { sort: name, descending: false });
      else if (!query.descending) query.descending = true;
      else query.sort = null;
      query.offset = 0;
      load();
    });
    cell.append(button);
    return cell;
  })));
  const cell = (found) => make("td", { className: typeof found === "number" ? "n" : "", textContent: found === null ? "–" : typeof found === "number" ? found.toLocaleString("en", { maximumFractionDigits: 6 }) : String(found) });
  body.replaceChildren(...answer.rows.map((row) => make("tr", {}, ...row.map(cell))));
  const last = query.offset + answer.rows.length, n = (number) => number.toLocaleString("en");
  status.textContent = answer.matching === 0 ? "no rows" : `rows ${n(query.offset + 1)} to ${n(last)} of ${n(answer.matching)}${answer.matching < answer.total ? `, of ${n(answer.total)} in all` : ""}`;
  before.disabled = query.offset === 0;
  after.disabled = last >= answer.matching;
  announce(status.textContent);
};
const showConditions = () => conditions.replaceChildren(...query.filters.map((filter, at) => {
  const button = make("button", { type: "button", className: "tool", textContent: `${filter.column} ${RELATIONS[filter.is]} ${filter.value} ×`, title: "remove the condition" });
  button.addEventListener("click", () => { query.filters.splice(at, 1); query.offset = 0; load(); });
  return button;
}));

let asked = 0;
const load = async () => {
  const own = ++asked, { table, ...rest } = query;
  showConditions();
  status.textContent = "reading …";
  try {
    const answer = await fetch(`table/${table}`, { method: "POST", body: JSON.stringify(rest) });
    const found = await answer.json();
    if (own !== asked) return;
    if (!answer.ok) throw new Error(found.error);
    problem.textContent = "";
    show(found);
  } catch (error) {
    if (own !== asked) return;
    problem.textContent = error.message;
    status.textContent = "";
  }
};
load();
