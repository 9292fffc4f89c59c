"use strict";

// A fault anywhere in this script becomes visible to whoever tests the page.
window.addEventListener("error", (event) => {
  document.documentElement.dataset.error = event.message;
});

function addTooltip(parent) {
  const tooltip = document.createElement("div");
  tooltip.className = "tooltip";
  tooltip.hidden = true;
  parent.append(tooltip);
  return tooltip;
}

// A tooltip stands beside the pointer, on the side with more room.
function placeTooltip(tooltip, event) {
  const box = tooltip.parentElement.getBoundingClientRect();
  const offset = event.clientX - box.left;
  const isRight = event.clientX > document.documentElement.clientWidth / 2;
  tooltip.style.left = isRight ? "" : `${offset + 16}px`;
  tooltip.style.right = isRight ? `${box.width - offset + 16}px` : "";
  tooltip.style.top = `${event.clientY - box.top + 12}px`;
}
