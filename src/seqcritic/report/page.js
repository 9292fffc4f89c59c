const hiddenLabels = new Set();

function showMethods(section) {
  for (const group of section.querySelectorAll("g.method")) {
    group.classList.toggle("off", hiddenLabels.has(group.dataset.label));
  }
  for (const button of section.querySelectorAll(".legend button")) {
    button.setAttribute("aria-pressed", String(!hiddenLabels.has(button.dataset.label)));
  }
}

function toggleMethod(section, label) {
  if (!hiddenLabels.delete(label)) {
    hiddenLabels.add(label);
  }
  showMethods(section);
}

function readPoints(group) {
  return Array.from(group.querySelectorAll("[data-compute]"), (point) => ({
    x: Number(point.dataset.x),
    compute: Number(point.dataset.compute),
    score: point.dataset.score,
  }));
}

function nearest(points, x) {
  return points.reduce((best, point) => (Math.abs(point.x - x) < Math.abs(best.x - x) ? point : best));
}

function styleOf(group) {
  return Array.from(group.classList).filter((name) => /^(method|dash)-/.test(name)).join(" ");
}

function listReadings(drawing, x) {
  const readings = [];
  for (const group of drawing.querySelectorAll("g.method:not(.off)")) {
    const points = readPoints(group);
    const slack = 12; // pixels beyond the ends of a curve, within which it still answers
    const isWithin = points.length > 0 && x >= points[0].x - slack && x <= points[points.length - 1].x + slack;
    if (isWithin) {
      readings.push({ label: group.dataset.label, style: styleOf(group), ...nearest(points, x) });
    }
  }
  return readings;
}

function fillTooltip(tooltip, readings) {
  tooltip.replaceChildren();
  for (const reading of readings) {
    const line = document.createElement("div");
    const swatch = document.createElement("span");
    swatch.className = `swatch ${reading.style}`;
    const score = document.createElement("b");
    score.textContent = reading.score;
    const compute = Math.round(reading.compute).toLocaleString("en");
    line.append(swatch, score, ` ${reading.label} at ${compute}`);
    tooltip.append(line);
  }
}

function followPointer(drawing) {
  const svg = drawing.querySelector("svg.curves");
  const axes = drawing.querySelector("g.axes");
  if (axes === null) {
    return;
  }
  const crosshair = document.createElementNS(svg.namespaceURI, "line");
  crosshair.setAttribute("class", "crosshair");
  axes.append(crosshair);
  const tooltip = addTooltip(drawing);

  // The tooltip tells what the titles of the points tell; both at once would cover each other.
  for (const title of svg.querySelectorAll("title")) {
    title.remove();
  }

  const leave = () => {
    tooltip.hidden = true;
    crosshair.removeAttribute("y2");
  };
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("pointermove", (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const readings = listReadings(drawing, place.x);
    if (readings.length === 0) {
      leave();
      return;
    }
    const x = readings.reduce((best, one) => (Math.abs(one.x - place.x) < Math.abs(best - place.x) ? one.x : best), Infinity);
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", axes.dataset.top], ["y2", axes.dataset.bottom]]) {
      crosshair.setAttribute(name, value);
    }
    fillTooltip(tooltip, readings);
    tooltip.hidden = false;
    placeTooltip(tooltip, event);
  });
}

function start() {
  const section = document.getElementById("curves");
  for (const legend of section.querySelectorAll(".legend")) {
    legend.hidden = false;
  }
  for (const button of section.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => toggleMethod(section, button.dataset.label));
  }
  for (const label of section.querySelectorAll("g.method text.label")) {
    label.addEventListener("click", () => toggleMethod(section, label.parentElement.dataset.label));
  }
  section.querySelectorAll(".wide, .narrow").forEach(followPointer);
  // On paper nobody can open what is folded.
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) {
      details.open = true;
    }
  });
  document.documentElement.dataset.ready = "true";
}

start();
