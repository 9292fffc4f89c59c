const strips = document.getElementById("follow");
const buttons = Array.from(strips.querySelectorAll(".prediction button"));

// The matrices hold every weight, so the strips are filled from their rows.
function fillStrip(role, index) {
  const row = document.querySelector(`.matrix.${role} tr[data-step="${index}"]`);
  const weights = row.querySelectorAll("td");
  strips.querySelectorAll(`.strip.${role} li`).forEach((cell, place) => {
    cell.setAttribute("style", weights[place].getAttribute("style"));
    cell.querySelector(".weight").textContent = weights[place].textContent;
  });
}

// Where a strip is longer than its line, the cell that matters is brought to its middle.
function showCell(cell) {
  const line = cell.closest("ol");
  const offset = cell.getBoundingClientRect().left - line.getBoundingClientRect().left;
  line.scrollLeft += offset - (line.clientWidth - cell.offsetWidth) / 2;
}

function showStrongest(role) {
  const weigh = (cell) => Number(cell.style.getPropertyValue("--w"));
  const cells = Array.from(strips.querySelectorAll(`.strip.${role} li`));
  showCell(cells.reduce((best, cell) => (weigh(cell) > weigh(best) ? cell : best)));
}

function chooseStep(index) {
  for (const button of buttons) {
    const isChosen = button === buttons[index];
    // One stop for the tab key; within the row arrows move.
    button.tabIndex = isChosen ? 0 : -1;
    button.toggleAttribute("aria-current", isChosen);
    if (isChosen) {
      button.setAttribute("aria-current", "step");
    }
  }
  for (const part of document.querySelectorAll("[data-step]:not(button)")) {
    part.classList.toggle("current", Number(part.dataset.step) === index);
  }
  fillStrip("actor", index);
  fillStrip("critic", index);
  showStrongest("actor");
  showStrongest("critic");
  // A strip must not move away from under the pointer.
  if (!buttons[index].matches(":hover")) {
    showCell(buttons[index].parentElement);
  }
  strips.querySelector(".summary").textContent = buttons[index].dataset.summary;
}

function stepOf(target) {
  const part = target instanceof Element ? target.closest("[data-step]") : null;
  return part === null ? null : Number(part.dataset.step);
}

function follow(event) {
  const index = stepOf(event.target);
  if (index !== null && !buttons[index].hasAttribute("aria-current")) {
    chooseStep(index);
  }
}

function moveByKey(event) {
  const current = buttons.findIndex((button) => button.hasAttribute("aria-current"));
  const last = buttons.length - 1;
  const places = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: last };
  if (event.key in places) {
    event.preventDefault();
    // Focus alone: `follow` hears of it and chooses the step.
    buttons[Math.min(Math.max(places[event.key], 0), last)].focus();
  }
}

function tellWeights(figure) {
  const tooltip = addTooltip(figure);
  const heads = figure.querySelectorAll("thead th");
  const reader = figure.classList.contains("actor") ? "actor" : "critic";
  figure.addEventListener("pointerleave", () => {
    tooltip.hidden = true;
  });
  figure.addEventListener("pointermove", (event) => {
    const cell = event.target.closest("tbody td");
    tooltip.hidden = cell === null;
    if (cell === null) {
      return;
    }
    const weight = 100 * Number(cell.style.getPropertyValue("--w"));
    const row = cell.parentElement;
    const place = Array.prototype.indexOf.call(row.cells, cell) - 1;
    const token = row.querySelector("th").textContent;
    tooltip.textContent =
      `${weight.toFixed(1)} % of the ${reader}’s attention is on “${heads[place].textContent}” (place ${place + 1}) ` +
      `when “${token}” (step ${Number(row.dataset.step) + 1}) is chosen`;
    placeTooltip(tooltip, event);
  });
}

function start() {
  strips.querySelector(".hint").hidden = false;
  document.addEventListener("pointerover", follow);
  document.addEventListener("focusin", follow);
  document.addEventListener("click", follow);
  strips.querySelector(".prediction").addEventListener("keydown", moveByKey);
  document.querySelectorAll(".matrix").forEach(tellWeights);
  // The line beneath the strips tells what the titles tell; both at once would cover each other.
  for (const title of document.querySelectorAll(".column title")) {
    title.remove();
  }
  chooseStep(0);
  document.documentElement.dataset.ready = "true";
}

start();
