"use strict";
// The search: every word must be in the title, or in the words that lead to an entry; titles come first.

const SHOWN = 30;
const field = document.getElementById("search");
const list = document.getElementById("found");
const status = document.getElementById("status");
// "exactly once", "exactly-once" and "exactly_once_v2" are found by each other; dots stay, for releases.
const plain = (text) => text.toLowerCase().replace(/[-_\s]+/g, " ");
const haystacks = ENTRIES.map(([kind, title, , words]) => [plain(title), plain(`${kind} ${title} ${words}`)]);

function rank(words, [title, all]) {
  if (!words.every((word) => all.includes(word))) return 0;
  if (title === words.join(" ")) return 3;
  return words.every((word) => title.includes(word)) ? 2 : 1;
}

function item([kind, title, url]) {
  const entry = document.createElement("li");
  const what = document.createElement("span");
  const link = document.createElement("a");
  what.className = "kind";
  what.textContent = kind;
  link.href = url;
  link.textContent = title;
  entry.append(what, " ", link);
  return entry;
}

function search() {
  const words = plain(field.value).split(" ").filter(Boolean);
  const ranked = ENTRIES.map((entry, at) => [rank(words, haystacks[at]), at]).filter(([how]) => how > 0);
  ranked.sort(([one, at], [other, after]) => other - one || at - after);
  const shown = words.length ? ranked.slice(0, SHOWN) : [];
  list.replaceChildren(...shown.map(([, at]) => item(ENTRIES[at])));
  const more = ranked.length > shown.length ? `, the first ${shown.length} are shown` : "";
  status.textContent = words.length ? `${ranked.length} found${more}` : "";
}

field.addEventListener("input", search);
field.form.addEventListener("submit", (event) => {
  event.preventDefault();
  list.querySelector("a")?.click();
});
