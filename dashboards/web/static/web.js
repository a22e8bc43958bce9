// Live pages: an event stream tells what changed; rows are replaced one by one, so that focus and open details stay.
"use strict";
(() => {
  const main = document.getElementById("main");
  const link = document.getElementById("link");

  const passed = (seconds) => {
    const s = Math.max(0, Math.round(seconds));
    if (s < 60) return `${s} s`;
    const minutes = Math.floor(s / 60);
    return minutes < 60 ? `${minutes} min ${s % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  };
  const tick = () => {
    for (const each of main.querySelectorAll("time[data-since]")) {
      each.textContent = passed(Date.now() / 1000 - Number(each.dataset.since));
    }
  };

  // The token of a link (#TOKEN) goes into the form and out of the address.
  const token = document.getElementById("token");
  if (token && location.hash.length > 1) {
    token.value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", location.pathname + location.search);
  }

  const made = (html) => {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    return holder.content;
  };
  // Where the focus is, as a way to find it again: an element's id, or its part and its place in it.
  const place = () => {
    const at = document.activeElement;
    if (!at || !main.contains(at)) return null;
    if (at.id) return () => document.getElementById(at.id);
    const part = at.closest("[id]");
    const number = [...part.querySelectorAll("a, button, input, summary, pre")].indexOf(at);
    return () => document.getElementById(part.id)?.querySelectorAll("a, button, input, summary, pre")[number];
  };
  const isTyping = () => main.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");

  const show = (news) => {
    const back = place();
    if (news.main !== undefined) {
      const open = [...main.querySelectorAll("details[open][id]")].map((each) => each.id);
      main.replaceChildren(made(news.main));
      for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    } else {
      for (const [id, html] of Object.entries(news.parts)) document.getElementById(id)?.replaceWith(made(html));
    }
    const again = back?.();
    if (again && again !== document.activeElement) again.focus({ preventScroll: true });
    tick();
  };

  let late = null; // a whole page that came while somebody typed
  const listen = () => {
    const query = new URLSearchParams({ page: main.dataset.page, have: main.dataset.hash });
    const stream = new EventSource(`/events?${query}`);
    stream.onopen = () => { link.textContent = ""; };
    stream.onerror = () => { link.textContent = "not connected, this may be old"; };
    stream.onmessage = (event) => {
      main.dataset.hash = event.lastEventId;
      const news = JSON.parse(event.data);
      if (news.main !== undefined && isTyping()) late = news;
      else { late = null; show(news); }
    };
    stream.addEventListener("over", () => stream.close());
    addEventListener("pagehide", () => stream.close());
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  };
  main.addEventListener("focusout", () => setTimeout(() => {
    if (late && !isTyping()) { show(late); late = null; }
  }, 0));

  // What is out of sight is laid out after the first picture, for screen readers and for who looks for a word.
  // The stream, too, begins after it, which it would hold up; a page in the background has no picture.
  let begun = main.dataset.live === undefined;
  const begin = () => {
    if (!begun) listen();
    begun = true;
  };
  new PerformanceObserver(() => {
    document.body.classList.add("drawn");
    begin();
  }).observe({ type: "paint", buffered: true });
  setTimeout(begin, 1000);

  tick();
  setInterval(tick, 1000);
})();
