// Behaviour only: without this script the page still shows every number and every chart.
(() => {
  "use strict";
  const root = document.documentElement;
  const tip = document.getElementById("tip");
  const theme = document.getElementById("theme");

  // Buttons
  const themes = ["auto", "dark", "light"];
  let chosen = 0;
  document.querySelector(".tools").hidden = false;
  document.getElementById("print").onclick = () => print();
  theme.onclick = () => {
    chosen = (chosen + 1) % themes.length;
    if (chosen) root.dataset.theme = themes[chosen];
    else delete root.dataset.theme;
    theme.textContent = "Theme: " + themes[chosen];
  };

  // Mouse, finger, keyboard and screen reader get the same words: the label of the mark.
  const MARKS = "[role=graphics-symbol][aria-label]:not(g)"; // axes are groups: read aloud, not pointed at
  const REACH = matchMedia("(pointer: coarse)").matches ? 24 : 12; // pixels around a mark that still mean it
  let current = null;
  let byKey = false;

  function hide() {
    if (current) current.classList.remove("on");
    current = null;
    tip.classList.remove("on");
  }
  function place(box) {
    const left = box.left + box.width / 2 - tip.offsetWidth / 2;
    const above = box.top - tip.offsetHeight - 10;
    tip.style.left = Math.max(8, Math.min(innerWidth - tip.offsetWidth - 8, left)) + "px";
    tip.style.top = (above < 8 ? box.bottom + 10 : above) + "px";
  }
  function say(text, element) {
    tip.textContent = text;
    tip.classList.add("on");
    place(element.getBoundingClientRect());
  }
  function show(mark) {
    if (mark === current) return;
    hide();
    if (!mark) return;
    current = mark;
    mark.classList.add("on");
    if (byKey) mark.scrollIntoView({ block: "nearest" });
    say(mark.getAttribute("aria-label"), mark);
  }
  function nearest(svg, x, y) {
    let best = null;
    let least = REACH;
    for (const mark of svg.querySelectorAll(MARKS)) {
      const b = mark.getBoundingClientRect();
      const away = Math.hypot(Math.max(b.left - x, 0, x - b.right), Math.max(b.top - y, 0, y - b.bottom));
      if (away < least) {
        least = away;
        best = mark;
      }
    }
    return best;
  }
  function point(event) {
    const svg = event.target.closest?.(".plot svg");
    if (!svg && byKey && event.type === "pointermove") return;
    byKey = false;
    show(svg && (event.target.closest(MARKS) || nearest(svg, event.clientX, event.clientY)));
  }
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.addEventListener("focusin", (event) => {
    if (!event.target.matches(".plot svg:focus-visible")) return;
    hide();
    byKey = true;
    say("Arrow keys read the marks, Esc closes.", event.target);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const svg = document.activeElement.closest(".plot svg");
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!svg || !step) return;
    const marks = [...svg.querySelectorAll(MARKS)];
    if (!marks.length) return;
    event.preventDefault();
    byKey = true;
    const at = marks.indexOf(current);
    const next = at < 0 ? (step > 0 ? 0 : -1) : at + step;
    show(marks.at(next % marks.length));
  });
  addEventListener("scroll", () => {
    if (byKey && current) place(current.getBoundingClientRect());
    else hide();
  }, { passive: true });
})();
