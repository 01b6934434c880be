// Fetches the part of the page that changes, and puts it where the old one was; without this script the page is loaded anew.
"use strict";
const place = document.getElementById("live");
const pause = 1000 * Number(place.dataset.seconds);
async function look() {
  try {
    const answer = await fetch(place.dataset.from, { credentials: "same-origin" });
    if (answer.ok) {
      const open = place.querySelector("details")?.open;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      place.replaceChildren(...fresh.body.childNodes);
      if (open) place.querySelector("details")?.setAttribute("open", "");
    }
  } catch {
    // the service does not answer now: what is shown stays, and it is asked again
  }
  const phase = place.querySelector("[data-phase]")?.dataset.phase;
  if (phase !== "ended" && phase !== "refused") setTimeout(look, pause);
}
setTimeout(look, pause);
