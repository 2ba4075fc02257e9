"use strict";
// The theme, details that load what they show, buttons that copy, timelines.

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

function airflowsTheme() {
  try {
    const outer = window.parent === window ? null : window.parent.document.documentElement;
    return outer && ["dark", "light"].find((name) => outer.classList.contains(name) || outer.dataset.theme === name);
  } catch {
    return null; // shown by another host
  }
}

function applyTheme() {
  const wanted = new URLSearchParams(location.search).get("theme");
  const theme = ["dark", "light"].includes(wanted) ? wanted : airflowsTheme();
  if (theme) root.dataset.theme = theme;
}

const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

applyTheme();
if (airflowsTheme()) {
  const outer = window.parent.document.documentElement;
  new MutationObserver(() => { applyTheme(); drawAgain(); }).observe(outer, { attributes: true });
}
system.addEventListener("change", drawAgain);

// Without its button that uploads the plot to its vendor.
const CONFIG = { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "" };

async function draw(place) {
  const status = place.querySelector(".status");
  try {
    let figure;
    if (place.dataset.src) {
      const answer = await fetch(`${place.dataset.src}?theme=${isDark() ? "dark" : "light"}`, { headers: { Accept: "application/json" } });
      figure = await answer.json();
      if (!answer.ok) throw new Error(figure.detail);
    } else {
      figure = JSON.parse(place.querySelector(isDark() ? "script.dark" : "script.light").textContent);
    }
    let plot = place.querySelector(".plot");
    if (!plot) {
      plot = document.createElement("div");
      plot.className = "plot";
      place.append(plot);
    }
    await Plotly.react(plot, figure.data, figure.layout, CONFIG);
    status?.remove();
  } catch (error) {
    if (status) status.textContent = error.message;
  }
}

// A plot is drawn when it comes into view.
const watched = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    watched.unobserve(entry.target);
    draw(entry.target);
  }
}, { rootMargin: "400px" });

function drawAgain() {
  for (const plot of document.querySelectorAll(".plot")) draw(plot.parentElement);
}

async function load(details) {
  const address = details.dataset.load;
  if (!address) return;
  delete details.dataset.load; // not twice at once
  const place = details.querySelector("p");
  try {
    const answer = await fetch(address);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.querySelector(".records");
    if (!found) throw new Error(page.querySelector("main p")?.textContent ?? "The records could not be loaded.");
    place.replaceWith(document.importNode(found, true));
  } catch (error) {
    details.dataset.load = address; // opening it again tries again
    const status = place.querySelector(".status") ?? place.appendChild(document.createElement("span"));
    status.className = "status";
    status.textContent = error instanceof TypeError ? " The records could not be loaded." : ` ${error.message}`;
  }
}

// Airflow shows the page in a frame that may open nothing; its own document may.
function openOutside(event) {
  const link = event.target.closest("a[target=_blank]");
  if (!link || window.parent === window) return;
  const outer = window.parent.document.createElement("a");
  Object.assign(outer, { href: link.href, target: "_blank", rel: "noopener noreferrer" });
  outer.click();
  event.preventDefault();
}

document.addEventListener("toggle", (event) => {
  if (event.target.open) load(event.target);
}, true);

document.addEventListener("click", async (event) => {
  openOutside(event);
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
});

document.addEventListener("submit", (event) => {
  for (const field of event.target.elements) if (field.value === "") field.disabled = true; // a short link
});

addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form [disabled]")) field.disabled = false; // after "back"
});

// When Plotly is there, which is loaded last.
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".timeline")) watched.observe(place);
  // On another host without TLS there is no clipboard.
  if (!navigator.clipboard) for (const button of document.querySelectorAll("[data-copy]")) button.hidden = true;
});
