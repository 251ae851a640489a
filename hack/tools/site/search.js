// Finds pages by the words that are typed. Words in a title count more than words in the text.
"use strict";
const input = document.getElementById("search");
const found = document.getElementById("found");
const root = document.body.dataset.root;
const most = 12;

// On a phone the list of pages would stand before every page.
if (matchMedia("(max-width: 50rem)").matches) document.querySelector("nav details").open = false;

function score(page, words) {
  const title = page.title.toLowerCase();
  const text = page.text.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const inTitle = title.includes(word);
    const times = text.split(word).length - 1;
    if (!inTitle && times === 0) return 0;
    sum += (inTitle ? 20 : 0) + Math.min(times, 5);
  }
  return sum;
}

// The text around the first word.
function around(page, word) {
  const at = page.text.toLowerCase().indexOf(word);
  const from = Math.max(0, at - 40);
  return (from > 0 ? "…" : "") + page.text.slice(from, from + 120) + "…";
}

input.addEventListener("input", () => {
  const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  found.replaceChildren();
  if (words.length === 0) return;
  const hits = pages.map((page) => [score(page, words), page]).filter(([points]) => points > 0);
  hits.sort(([x], [y]) => y - x);
  for (const [, page] of hits.slice(0, most)) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = root + page.link;
    link.textContent = page.title;
    const text = document.createElement("small");
    text.textContent = around(page, words[0]);
    item.append(link, text);
    found.append(item);
  }
  if (hits.length === 0) found.append("Nothing has all of these words.");
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) {
    event.preventDefault();
    input.focus();
  }
});
