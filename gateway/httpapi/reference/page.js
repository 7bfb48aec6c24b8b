"use strict";
// Typing into the filter leaves the operations whose method, path or words match.
const filter = document.getElementById("filter");
const entries = [...document.querySelectorAll("nav li")];
const nothing = document.getElementById("nothing");
filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const entry of entries) {
    const text = entry.dataset.words.toLowerCase();
    entry.hidden = !words.every((word) => text.includes(word));
    shown += entry.hidden ? 0 : 1;
  }
  for (const section of document.querySelectorAll("nav section")) {
    section.hidden = !section.querySelector("li:not([hidden])");
  }
  nothing.hidden = shown > 0;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== filter) {
    event.preventDefault();
    filter.focus();
  }
});
