// Rules of accessibility (WCAG 2.1 AA, and the names that axe gives them), applied to the page that is open.
// Gives a list of texts: the rule, a colon, and the part that breaks it. Nothing of the page is changed.
() => {
  const wrong = [];
  const say = (rule, part) => {
    const text = typeof part === "string" ? part : part.outerHTML;
    wrong.push(`${rule}: ${text.replace(/\s+/g, " ").slice(0, 160)}`);
  };
  const all = (chosen, from = document) => [...from.querySelectorAll(chosen)];
  const seen = (part) => part.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const named = (part) => {
    const by = (part.getAttribute("aria-labelledby") || "").split(/\s+/).map((id) => document.getElementById(id));
    const said = [part.getAttribute("aria-label"), ...by.map((each) => each && each.textContent)];
    return said.some((each) => each && each.trim());
  };
  const text = (part) => part.textContent.trim() || all("img[alt]:not([alt='']), [aria-label]", part).length > 0;

  // html-has-lang, html-lang-valid, valid-lang, document-title, meta-viewport
  if (!/^(en|zh-Hans)$/.test(document.documentElement.lang)) say("lang", `lang=${document.documentElement.lang}`);
  all("[lang]:not([lang=''])").filter((each) => !/^[a-z]{2,3}(-[A-Za-z0-9]+)*$/.test(each.lang)).forEach((each) => say("lang", each));
  if (!document.title.trim()) say("title", "the page has no title");
  const view = document.querySelector("meta[name=viewport]");
  if (!view || /user-scalable\s*=\s*no|maximum-scale/.test(view.content)) say("zoom", "the page cannot be enlarged");

  // language of parts: an English sentence on a Chinese page is marked as one, or as of a language that nobody knows
  if (document.documentElement.lang.startsWith("zh")) {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const node = walk.currentNode, own = node.nodeValue.trim();
      const english = /(\b[A-Za-z][a-z]+\b[ ,;:]+){6,}/.test(own) && !/[\u3400-\u9fff]/.test(own);
      const around = node.parentElement.closest("[lang]");
      const code = node.parentElement.closest("code, pre, script, textarea, noscript");
      if (english && !code && around.lang.startsWith("zh")) say("language of parts", own);
    }
  }

  // label, select-name, button-name, fieldset
  all("input:not([type=hidden]):not([aria-hidden]), select, textarea").forEach((each) => {
    const labels = [...(each.labels || [])].some((label) => label.textContent.trim());
    const pressed = ["submit", "button", "reset"].includes(each.type) && each.value;
    if (!labels && !named(each) && !pressed) say("label", each);
  });
  all("button, summary").filter((each) => !text(each) && !named(each)).forEach((each) => say("button name", each));
  all("fieldset").filter((each) => !each.querySelector("legend")?.textContent.trim() && !named(each))
    .forEach((each) => say("legend", each));

  // image-alt, svg-img-alt, link-name
  all("img").filter((each) => !each.hasAttribute("alt")).forEach((each) => say("alt", each));
  all("svg").filter((each) => !each.closest("[aria-hidden=true]") && !each.closest("[role=img]"))
    .forEach((each) => say("alt", each));
  all("[role=img]").filter((each) => !named(each) && !each.querySelector("title")).forEach((each) => say("alt", each));
  all("a[href]").filter((each) => !text(each) && !named(each)).forEach((each) => say("link name", each));

  // page-has-heading-one, heading-order, empty-heading
  const heads = all("h1, h2, h3, h4, h5, h6").filter((each) => !each.closest("template"));
  const levels = heads.map((each) => Number(each.tagName[1]));
  if (levels[0] !== 1 || levels.filter((each) => each === 1).length !== 1) say("one h1", `levels ${levels}`);
  levels.forEach((level, at) => { if (at && level > levels[at - 1] + 1) say("heading order", heads[at]); });
  heads.filter((each) => !text(each)).forEach((each) => say("empty heading", each));

  // duplicate-id, aria-valid-attr-value: what is referred to is there
  const ids = all("[id]").map((each) => each.id);
  ids.filter((id, at) => ids.indexOf(id) !== at).forEach((id) => say("id", `id=${id} is there twice`));
  all("[aria-describedby], [aria-labelledby], label[for], input[list], a[href^='#']").forEach((each) => {
    const named = ["aria-describedby", "aria-labelledby", "for", "list"].map((name) => each.getAttribute(name) || "");
    const meant = [...named.join(" ").split(/\s+/), (each.getAttribute("href") || "").replace(/^[^#]*#?/, "")];
    if (meant.some((id) => id && !document.getElementById(id))) say("reference", each);
  });

  // landmark-one-main, region, landmark-unique, bypass
  if (all("main").length !== 1) say("landmark", `${all("main").length} main`);
  if (!all("header, [role=banner]").length) say("landmark", "no header");
  all("nav").filter((each) => !named(each)).forEach((each) => say("landmark name", each));
  [...document.body.children]
    .filter((each) => !each.matches("main, header, footer, nav, script, a.skip, noscript") && text(each))
    .forEach((each) => say("region", each));
  const first = document.querySelector("a[href], button, input:not([type=hidden])");
  if (!first?.matches("a[href^='#']")) say("skip link", first || "nothing to be reached by keyboard");

  // td-headers-attr, scope-attr-valid, empty-table-header; lists
  all("table").forEach((each) => {
    if (!each.querySelector("th")) say("table header", each);
    all("th", each).forEach((head) => {
      if (!["col", "row", "colgroup", "rowgroup"].includes(head.scope)) say("table scope", head);
      if (head.scope === "col" && !text(head) && !named(head)) say("empty table header", each);
    });
  });
  all("li").filter((each) => !each.parentElement.matches("ul, ol, menu")).forEach((each) => say("list", each));
  all("ul, ol").filter((each) => [...each.children].some((child) => !child.matches("li, script, template")))
    .forEach((each) => say("list", each));
  all("dt, dd").filter((each) => !each.parentElement.matches("dl, dl > div")).forEach((each) => say("list", each));

  // tabindex, nested-interactive, scrollable-region-focusable
  all("[tabindex]").filter((each) => each.tabIndex > 0).forEach((each) => say("keyboard order", each));
  all("a a, a button, button a, label a").forEach((each) => say("nested", each));

  // color-contrast: the text over whatever lies below it
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const read = new Map();
  const rgba = (colour) => {
    if (!read.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      read.set(colour, [r, g, b, a / 255]);
    }
    return read.get(colour);
  };
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3]));
  const light = (colour) => {
    const [r, g, b] = colour.map((each) => {
      const part = each / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = new Map();
  const below = (part) => {
    if (!part) return rgba("Canvas").slice(0, 3);
    if (!ground.has(part)) {
      const own = rgba(getComputedStyle(part).backgroundColor);
      ground.set(part, own[3] === 1 ? own.slice(0, 3) : over(own, below(part.parentElement)));
    }
    return ground.get(part);
  };
  const strength = new Map();
  const shownBy = (part) => {
    if (!part) return 1;
    if (!strength.has(part)) {
      strength.set(part, parseFloat(getComputedStyle(part).opacity) * shownBy(part.parentElement));
    }
    return strength.get(part);
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), looked = new Set();
  while (walk.nextNode()) {
    const part = walk.currentNode.parentElement;
    if (!walk.currentNode.nodeValue.trim() || looked.has(part)) continue;
    looked.add(part);
    if (part.closest("script, style, noscript, title, desc, option, datalist, [disabled], .unseen") || !seen(part)) continue;
    const style = getComputedStyle(part), drawn = part instanceof SVGElement;
    const box = part.getBoundingClientRect();
    if (!box.width || !box.height || box.right < 0) continue;
    const ink = rgba(drawn ? style.fill : style.color), size = parseFloat(style.fontSize);
    const behind = below(part), shown = over([...ink.slice(0, 3), ink[3] * shownBy(part)], behind);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const found = ratio(shown, behind);
    if (found < (large ? 3 : 4.5)) say("contrast", `${found.toFixed(2)} ${part.outerHTML}`);
  }
  // non-text contrast: where a field begins
  all("input:not([type=hidden]):not([type=range]):not([type=file]):not([type=checkbox]):not([type=radio]), select, textarea")
    .filter((each) => seen(each) && !each.matches(".unseen")).forEach((each) => {
      const found = ratio(over(rgba(getComputedStyle(each).borderTopColor), below(each)), below(each.parentElement));
      if (found < 3) say("field contrast", `${found.toFixed(2)} ${each.outerHTML}`);
    });
  return wrong;
}
