// What can be reached by keyboard, in its order: each part must show that it has the focus, and lie where it is read.
// Of long pages the first and the last parts are looked at. Called after a key was pressed, so that the focus is shown as it is to somebody who uses the keyboard.
() => {
  const wrong = [];
  const say = (rule, part) => wrong.push(`${rule}: ${part.outerHTML.replace(/\s+/g, " ").slice(0, 160)}`);
  const most = 60, every = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
    .filter((each) => !each.disabled && each.tabIndex >= 0 && each.checkVisibility({ visibilityProperty: true }));
  const parts = every.length <= most ? every : [...every.slice(0, most / 2), ...every.slice(-most / 2)];
  if (!parts.length) return ["focus: nothing can be reached by keyboard"];
  document.activeElement.blur();
  const plain = new Map(parts.map((each) => {
    const style = getComputedStyle(each);
    return [each, `${style.outlineStyle} ${style.outlineWidth} ${style.boxShadow} ${style.borderColor}`];
  }));
  for (const each of parts) {
    each.focus({ preventScroll: true });
    const style = getComputedStyle(each);
    const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    const other = `${style.outlineStyle} ${style.outlineWidth} ${style.boxShadow} ${style.borderColor}`;
    if (document.activeElement !== each) say("focus", each);
    else if (!ring || other === plain.get(each)) say("visible focus", each);
    const box = each.getBoundingClientRect();
    if (each.matches(".skip") && (box.right <= 0 || box.bottom <= 0)) say("skip link", each);
  }
  document.activeElement.blur();
  return wrong;
}
