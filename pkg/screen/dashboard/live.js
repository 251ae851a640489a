// Keeps the parts of the page up to date. Without it, the page loads itself again now and then.
"use strict";
const state = document.getElementById("state");
const lost = document.getElementById("lost"); // is read out when it changes
const waiting = {};

function show(id, html) {
  const part = document.getElementById(id);
  // What has the focus stays: a reader who is in a table would be thrown out of it.
  if (part.contains(document.activeElement)) {
    waiting[id] = html;
    return;
  }
  delete waiting[id];
  // Lists stay scrolled where they are.
  const { scrollTop = 0, scrollLeft = 0 } = part.querySelector(".scroll") ?? {};
  part.innerHTML = html;
  part.querySelector(".scroll")?.scrollTo(scrollLeft, scrollTop);
}

const events = new EventSource("events?" + document.body.dataset.query);
events.onmessage = (event) => {
  for (const [id, html] of Object.entries(JSON.parse(event.data))) show(id, html);
  state.textContent = "Live, as of " + new Date().toLocaleTimeString();
  lost.textContent = "";
};
events.onerror = () => { lost.textContent = "Not connected: what is shown may be old."; };
document.addEventListener("focusout", () => setTimeout(() => {
  for (const [id, html] of Object.entries(waiting)) show(id, html);
}));
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    document.querySelector("input[type=search]").focus();
  }
});
