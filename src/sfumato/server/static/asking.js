// The offer beside the form follows what is typed; the same offer comes without this script when the form is sent.
"use strict";
(() => {
  const form = document.getElementById("asking");
  const offer = document.getElementById("offer");
  if (!form || !offer) return;
  const slider = document.getElementById("slider");
  const epsilon = document.getElementById("epsilon");
  const margin = document.getElementById("margin");
  const by = (value) => form.querySelector(`input[name="by"][value="${value}"]`);
  let latest = 0;
  let waiting = 0;

  const fromSlider = () => (10 ** (Number(slider.value) / 100)).toPrecision(3);
  const toSlider = (text) => {
    const amount = Number(text);
    if (amount > 0) slider.value = String(Math.round(100 * Math.log10(amount)));
  };

  async function look() {
    const turn = ++latest;
    offer.classList.add("looking");
    try {
      const asked = new URLSearchParams(new FormData(form));
      const answer = await fetch(`${form.dataset.offer}?${asked}`, { headers: { Accept: "text/html" } });
      if (turn !== latest) return;
      if (!answer.ok || answer.redirected) throw new Error("no offer");
      const text = await answer.text();
      if (turn !== latest) return;
      const open = new Set([...offer.querySelectorAll("details[open]")].map((each) => each.className));
      const found = new DOMParser().parseFromString(text, "text/html");
      offer.replaceChildren(...found.body.childNodes);
      offer.querySelectorAll("details").forEach((each) => { if (open.has(each.className)) each.open = true; });
      const panel = offer.querySelector("[data-epsilon]");
      if (panel && by("margin") && by("margin").checked) toSlider(panel.dataset.epsilon);
    } catch (wrong) {
      if (turn === latest) offer.replaceChildren(document.createTextNode(form.dataset.failed));
    } finally {
      if (turn === latest) offer.classList.remove("looking");
    }
  }

  function soon(after) {
    clearTimeout(waiting);
    waiting = setTimeout(look, after);
  }

  const choose = (value) => { if (by(value)) by(value).checked = true; };

  slider.hidden = false;
  if (epsilon.value) toSlider(epsilon.value);
  slider.addEventListener("input", (event) => {
    event.stopPropagation();
    epsilon.value = fromSlider();
    choose("epsilon");
    soon(80);
  });
  epsilon.addEventListener("input", () => { choose("epsilon"); toSlider(epsilon.value); });
  if (margin) margin.addEventListener("input", () => choose("margin"));
  form.addEventListener("input", () => soon(250));
  form.addEventListener("change", () => soon(50));
  if (!offer.querySelector("[data-epsilon]")) soon(0);
})();
