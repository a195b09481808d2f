"use strict";
// Lets the report's plots answer to mouse, keyboard and touch. Without it the page is complete: every point has its
// words in a <title>, and every number stands in a table. It loads nothing and remembers nothing.
(() => {
  const REACH = 60; // pixels from the pointer to the farthest point that still answers

  const tip = make("div", { class: "tip", "aria-hidden": "true", hidden: "" });
  const voice = make("p", { class: "unseen", "aria-live": "polite" });
  const hint = make("p", { class: "unseen", id: "plot-keys" });
  hint.textContent = "Left and right arrow keys go from point to point. Up and down go to another line. Escape leaves.";
  document.body.append(tip, voice, hint);

  const off = new Set(); // the runs and parts that are switched off
  const plots = [...document.querySelectorAll("figure svg")].map(read).filter(plot => plot.points.length);
  let shown = null; // the plot whose point is shown

  function make(name, attributes) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  // The words of a point leave its <title>, because a browser would show them a second time.
  function read(svg) {
    const points = [...svg.querySelectorAll(".point")].map(element => {
      const title = element.querySelector("title");
      const words = title.textContent;
      title.remove();
      const owner = element.closest("[data-run]");
      const line = element.closest(".series, .row, .way") || element;
      return { element, words, owner, line, x: Number(element.dataset.x), y: Number(element.dataset.y) };
    });
    const ring = document.createElementNS(svg.namespaceURI, "circle");
    ring.setAttribute("class", "ring");
    ring.setAttribute("r", "7");
    return { svg, points, ring, at: null };
  }

  const isRows = plot => plot.svg.classList.contains("rows");
  const isOn = point => !point.owner || !point.owner.classList.contains("off");

  // What is shown

  function show(plot, point, speak) {
    if (shown && shown !== plot) hide(shown);
    shown = plot;
    plot.at = point;
    plot.ring.setAttribute("cx", point.x);
    plot.ring.setAttribute("cy", point.y);
    plot.svg.append(plot.ring);
    const place = plot.svg.getScreenCTM();
    const x = point.x * place.a + place.e, y = point.y * place.d + place.f;
    tell(point.words.split("\n"), x, y, isRows(plot)); // above a row stands its name
    highlight(point.owner && point.owner.dataset.run);
    if (speak) voice.textContent = point.words.replaceAll("\n", ", ");
  }

  function tell(lines, x, y, isBelow) {
    tip.replaceChildren(...lines.map(words => {
      const line = make("p", {});
      line.textContent = words;
      return line;
    }));
    tip.hidden = false;
    tip.style.left = "0"; // so that the window's edge does not make it narrow
    const box = tip.getBoundingClientRect();
    const left = Math.max(8, Math.min(x - box.width / 2, window.innerWidth - box.width - 8));
    const above = y - box.height - 14;
    tip.style.left = `${left}px`;
    tip.style.top = `${isBelow || above < 8 ? y + 14 : above}px`;
  }

  function hide(plot) {
    if (plot !== shown) return;
    plot.at = shown = null;
    plot.ring.remove();
    tip.hidden = true;
    highlight(null);
  }

  function leave() {
    if (shown) hide(shown);
    tip.hidden = true;
  }

  // The run at the pointer stands out in every plot.
  function highlight(run) {
    for (const element of document.querySelectorAll("svg [data-run]"))
      element.classList.toggle("dim", Boolean(run) && element.dataset.run !== run);
  }

  // Mouse and touch

  function nearest(plot, event) {
    const place = plot.svg.getScreenCTM();
    const sideways = isRows(plot) ? 0.1 : 1; // in rows, the row at the pointer counts
    const distance = point => Math.hypot(
      sideways * (point.x * place.a + place.e - event.clientX), point.y * place.d + place.f - event.clientY);
    const near = plot.points.filter(point => isOn(point) && distance(point) < REACH);
    return near.sort((one, other) => distance(one) - distance(other))[0];
  }

  function point(plot, event) {
    const found = nearest(plot, event);
    if (found) show(plot, found, event.pointerType === "touch");
    else hide(plot);
  }

  for (const plot of plots) {
    const svg = plot.svg;
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("aria-describedby", hint.id);
    svg.addEventListener("pointermove", event => point(plot, event));
    svg.addEventListener("pointerdown", event => point(plot, event));
    svg.addEventListener("pointerleave", event => event.pointerType === "mouse" && hide(plot));
    svg.addEventListener("keydown", event => key(plot, event));
    svg.addEventListener("blur", () => hide(plot));
  }
  document.addEventListener("pointerdown", event => (!shown || !shown.svg.contains(event.target)) && leave(), true);
  window.addEventListener("scroll", () => {
    if (!shown || shown.svg !== document.activeElement) leave();
  }, { passive: true });

  // A cell of a heat map says its corruption and severity, which may be out of view.
  function readCell(cell) {
    const table = cell.closest("table"), heads = table.tHead.rows[0].cells;
    const [corner, column] = [heads[0], heads[cell.cellIndex]].map(head => head.textContent.trim());
    const where = corner === "Severity" ? `severity ${column}` : column;
    return [table.caption.textContent, `${cell.parentElement.cells[0].textContent}, ${where}`, cell.textContent];
  }

  function tellCell(cell) {
    const box = cell.getBoundingClientRect();
    tell(readCell(cell), box.left + box.width / 2, box.top + 8, false);
  }

  for (const table of document.querySelectorAll(".heat-map table")) {
    for (const kind of ["pointerover", "pointerdown"])
      table.addEventListener(kind, event => {
        const cell = event.target.closest("td");
        leave();
        if (cell) tellCell(cell);
      });
    table.addEventListener("pointerleave", event => event.pointerType === "mouse" && leave());
  }

  // Keyboard

  function along(plot, step) {
    const line = plot.points.filter(one => one.line === plot.at.line).sort((one, other) => one.x - other.x);
    return line[line.indexOf(plot.at) + step] || plot.at;
  }

  function across(plot, step) {
    const lines = [...new Set(plot.points.filter(isOn).map(one => one.line))];
    const next = lines[lines.indexOf(plot.at.line) + step];
    const points = plot.points.filter(one => one.line === next);
    const distance = one => Math.abs(one.x - plot.at.x);
    return points.sort((one, other) => distance(one) - distance(other))[0] || plot.at;
  }

  const MOVES = {
    ArrowRight: plot => along(plot, 1),
    ArrowLeft: plot => along(plot, -1),
    ArrowDown: plot => across(plot, 1),
    ArrowUp: plot => across(plot, -1),
    Home: plot => plot.points.filter(one => one.line === plot.at.line)[0],
    End: plot => plot.points.filter(one => one.line === plot.at.line).at(-1),
  };

  function key(plot, event) {
    if (event.key === "Escape") return hide(plot);
    const first = plot.points.find(point => isOn(point) && point.line.dataset.part !== "members") || plot.points.find(isOn);
    if (!MOVES[event.key] || !first) return;
    event.preventDefault();
    show(plot, plot.at ? MOVES[event.key](plot) : first, true);
  }

  // Legends: a run or the members, switched in all plots at once

  function switchTo(name, isOff) {
    if (isOff) off.add(name);
    else off.delete(name);
    for (const element of document.querySelectorAll("svg [data-run]"))
      element.classList.toggle("off", off.has(`run ${element.dataset.run}`) || off.has(element.dataset.part));
    for (const button of document.querySelectorAll(".legend button"))
      button.setAttribute("aria-pressed", String(!off.has(button.dataset.name)));
    if (shown && !isOn(shown.at)) hide(shown);
  }

  for (const item of document.querySelectorAll(".legend li[data-run], .legend li[data-part]")) {
    const run = item.dataset.run;
    const name = run === undefined ? item.dataset.part : `run ${run}`;
    const button = make("button", { type: "button", "aria-pressed": "true", "data-name": name });
    button.append(...item.childNodes);
    item.append(button);
    button.addEventListener("click", () => switchTo(name, !off.has(name)));
    if (run !== undefined) {
      button.addEventListener("pointerenter", () => highlight(run));
      button.addEventListener("pointerleave", () => highlight(null));
    }
    if ("off" in item.dataset) switchTo(name, true);
  }

  // Contents: the section in view

  const links = new Map([...document.querySelectorAll("nav.contents a")].map(link => [link.hash.slice(1), link]));
  const inView = new Set();
  const watch = new IntersectionObserver(changes => {
    for (const { target, isIntersecting } of changes)
      inView[isIntersecting ? "add" : "delete"](target.getAttribute("aria-labelledby"));
    const current = [...links.keys()].find(id => inView.has(id));
    for (const [id, link] of links)
      if (id === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const id of links.keys()) {
    const heading = document.getElementById(id);
    if (heading) watch.observe(heading.closest("section"));
  }
})();
