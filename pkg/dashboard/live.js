// Keeps the parts of the page up to date. Without it, the page loads itself again now and then.
"use strict";
const state = document.getElementById("state");
const lost = document.getElementById("lost"); // is read out when it changes
const waiting = {};

// merge makes what is on the page like what was sent, and touches only what differs: to build and lay out tables takes a browser longest. So
// they stay scrolled where they are, too.
function merge(old, sent) {
  if (old.isEqualNode(sent)) return;
  if (old.nodeName !== sent.nodeName) {
    old.replaceWith(sent);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    old.data = sent.data;
    return;
  }
  for (const name of old.getAttributeNames()) if (!sent.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of sent.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  mergeChildren(old, sent);
}

function mergeChildren(old, sent) {
  const olds = [...old.childNodes], all = [...sent.childNodes];
  all.forEach((child, i) => { if (i < olds.length) merge(olds[i], child); else old.append(child); });
  olds.slice(all.length).forEach((child) => child.remove());
}

function show(id, html) {
  const part = document.getElementById(id);
  // What has the focus stays: a reader who is in a table would be thrown out of it.
  if (part.contains(document.activeElement)) {
    waiting[id] = html;
    return;
  }
  delete waiting[id];
  const sent = document.createElement("template");
  sent.innerHTML = html;
  mergeChildren(part, sent.content);
}

const events = new EventSource("events?" + document.body.dataset.query + "&shown=" + document.body.dataset.shown);
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
