// The sliders of a plan: what they come to is asked for while they move. Without this script the button does it.
"use strict";
for (const form of document.querySelectorAll("form.sliders")) {
  let waiting = 0, asked = 0;
  const ask = async () => {
    const mine = ++asked;
    const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    if (!answer.ok || mine !== asked) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.getElementById(form.dataset.into);
    if (found) document.getElementById(form.dataset.into).replaceChildren(...found.childNodes);
    history.replaceState(null, "", address);
  };
  form.addEventListener("input", (event) => {
    const other = event.target.dataset.for && document.getElementById(event.target.dataset.for);
    if (other) other.value = event.target.value;
    if (event.target.type === "number") {
      const slider = form.querySelector(`[data-for="${event.target.id}"]`);
      if (slider) slider.value = event.target.value;
    }
    clearTimeout(waiting);
    waiting = setTimeout(ask, 150);
  });
}
