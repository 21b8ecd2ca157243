// The live page: quotes over the hub's own WebSocket port, like any client's; all else from the plant's counters.
// Nothing that comes from outside becomes markup: texts are set as texts.

import { Consumer } from "./tapeline.js";

const FIELDS = ["BID", "BIDSIZE", "ASK", "ASKSIZE", "TRDPRC_1", "TRDVOL_1"];
const LOOK_MS = 1000; // the counters are written once a second
const KEPT = 120; // points of the timeline, one a second
const MOST_ITEMS = 200;
const MOST_SESSIONS = 200;

const byId = (id) => document.getElementById(id);
const params = new URLSearchParams(location.search);

function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

function say(id, kind, words) {
  const badge = byId(id);
  text(badge, words);
  badge.className = "badge " + kind;
}

// ---- numbers

function count(value) {
  return Number(value || 0).toLocaleString("en-US", { maximumFractionDigits: 0 });
}

function quantity(value, unit) {
  let v = Number(value || 0);
  for (const prefix of ["", "k", "M", "G"]) {
    if (v < 1000 || prefix === "G") return (v >= 100 || Number.isInteger(v) ? v.toFixed(0) : v.toPrecision(3)) + " " + prefix + unit;
    v /= 1000;
  }
}

function duration(ns) {
  if (ns === null || ns === undefined) return "–";
  let v = ns;
  for (const [unit, step] of [["ns", 1000], ["µs", 1000], ["ms", 1000]]) {
    if (v < step) return (v < 100 && unit !== "ns" ? v.toFixed(1) : v.toFixed(0)) + " " + unit;
    v /= step;
  }
  if (v < 120) return v.toFixed(1) + " s";
  return v < 7200 ? (v / 60).toFixed(0) + " min" : (v / 3600).toFixed(1) + " h";
}

function price(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "–" : String(value);
  const written = String(value);
  const decimals = written.includes(".") ? written.length - written.indexOf(".") - 1 : 0;
  return decimals <= 2 ? value.toFixed(2) : written;
}

// ---- tables of what the counters say

function cells(row, values) {
  while (row.cells.length < values.length) row.insertCell();
  values.forEach((value, at) => {
    const cell = row.cells[at];
    if (value && value.kind) {
      let badge = cell.firstElementChild;
      if (!badge) badge = cell.appendChild(document.createElement("span"));
      text(badge, value.words);
      badge.className = "state " + value.kind;
    } else if (value && value.bar !== undefined) {
      let bar = cell.querySelector(".bar");
      if (!bar) {
        bar = cell.appendChild(document.createElement("span"));
        bar.className = "bar";
        bar.appendChild(document.createElement("i"));
        cell.appendChild(document.createElement("span"));
      }
      bar.firstElementChild.style.width = Math.min(100, 100 * value.bar).toFixed(1) + "%";
      text(cell.lastElementChild, value.words);
    } else {
      text(cell, String(value));
    }
  });
}

function fill(id, rows, nothing) {
  const table = byId(id), body = table.tBodies[0], heads = table.tHead.rows[0].cells;
  const none = rows.length === 0;
  while (body.rows.length > (none ? 0 : rows.length) || (body.rows[0] && body.rows[0].cells[0].className === "none" && !none)) {
    body.deleteRow(-1);
  }
  if (none) {
    const cell = body.insertRow().insertCell();
    cell.colSpan = heads.length;
    cell.className = "none";
    text(cell, nothing);
    return;
  }
  rows.forEach((values, at) => {
    const row = body.rows[at] || body.insertRow();
    cells(row, values);
    for (let column = 0; column < heads.length; column++) row.cells[column].className = heads[column].className;
  });
}

const FEED_KINDS = { live: "good", recovering: "warn", initial: "wait", stale: "bad" };
const history = [];
let snapshot = null;
let failures = 0;

async function look() {
  try {
    const answer = await fetch("stat.json", { cache: "no-store", signal: AbortSignal.timeout(4000) });
    if (!answer.ok) throw new Error("HTTP " + answer.status);
    snapshot = await answer.json();
    failures = 0;
    show();
  } catch (error) {
    failures += 1;
    say("counters", "bad", "counters: no answer (" + count(failures) + ")");
    history.push(null);
  }
  if (history.length > KEPT) history.splice(0, history.length - KEPT);
  draw();
  alarm();
  setTimeout(look, LOOK_MS);
}

function show() {
  const now = snapshot, hub = now.hub || {}, journal = now.journal;
  text(byId("plant"), now.plant);
  document.title = now.plant + " – Tapeline";
  const late = Math.max(0, now.written_ns - Math.min(now.heard_ns || now.started_ns, hub.heard_ns || now.started_ns)) / 1e9;
  if (journal && journal.state !== "keeping") say("counters", "bad", "journal: cannot be written; " + (journal.state === "without" ? "ticks are published WITHOUT it" : "the plant stops"));
  else if (now.kdb && now.kdb.ended) say("counters", "bad", "kdb+: its clients are no longer served");
  else if (now.zeromq && now.zeromq.ended) say("counters", "bad", "ZeroMQ: its subscribers are no longer served");
  else if (late > 5) say("counters", "bad", "counters: a thread has said nothing for " + late.toFixed(0) + " s");
  else say("counters", "good", "counters: " + now.process.cores.toFixed(2) + " cores, " + quantity(now.process.resident_bytes, "B"));

  fill("feeds", now.feeds.map((feed) => [
    feed.name,
    { kind: FEED_KINDS[feed.state] || "warn", words: feed.ended ? feed.state + ", session over" : feed.state },
    count(feed.messages_per_second), count(feed.missing), count(feed.kernel_drops),
  ]), "no feeds");
  venues(now);
  fill("services", (hub.services || []).map((service) => [
    service.name, service.up ? { kind: "good", words: "up" } : { kind: "bad", words: "down" }, service.text || "–",
  ]), "no services yet");
  facts([
    ["Process", now.pid + ", version " + now.version + ", up " + duration(now.written_ns - now.started_ns)],
    ["Ticks", count(now.ticks) + ", " + quantity(now.ticks_per_second, "ticks/s")],
    ...(now.upstream ? [["Plant above", plantAbove(now.upstream)]] : []),
    ...(now.bridge ? [["Plants below", plantsBelow(now.bridge)]] : []),
    ...(now.lease ? [["Lease", whoLeads(now.lease)]] : []),
    ["Journal", journal ? journal.state + ", up to tick " + count(journal.kept) + (journal.missing ? ", " + count(journal.missing) + " missing" : "") : "–"],
    ["Cache", hub.cache ? count(hub.cache.items) + " items, " + quantity(hub.cache.bytes, "B") + " of " + quantity(hub.cache.limit_bytes, "B") : "–"],
    ["Sent", hub.totals ? count(hub.totals.refreshes) + " images, " + count(hub.totals.updates) + " updates" : "–"],
  ]);
  fill("latency", (hub.latency || []).map((hop) => [
    hop.hop.replace("_to_", " → "), count(hop.now.samples),
    ...["p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns"].map((rank) => duration(hop.now[rank])),
  ]), "no hub");
  const sessions = hub.sessions || [];
  text(byId("sessions-note"), sessions.length + " open, " + count(hub.opened) + " ever, " + count(hub.cut) + " cut");
  fill("sessions", sessions.slice(0, MOST_SESSIONS).map((session) => [
    session.session, session.user || "–", session.address, session.transport, count(session.streams),
    { bar: session.queued_bytes / (8 << 20), words: quantity(session.queued_bytes + session.unsent_bytes, "B") },
    session.lag_ns ? duration(session.lag_ns) : "–",
    count(session.refreshes), count(session.updates), count(session.rates.updates), count(session.conflated),
  ]), "nobody is connected");
  fill("readers", now.readers.map((reader) => [
    reader.name, reader.pid,
    !reader.alive ? { kind: "bad", words: "dead" } : reader.evicted ? { kind: "bad", words: "evicted" } : { kind: "good", words: "alive" },
    { bar: reader.lag_bytes / Math.max(1, now.backpressure.ring_bytes), words: quantity(reader.lag_bytes, "B") },
  ]), "nobody reads the ring");

  const sent = (hub.latency || []).find((hop) => hop.hop === "wire_to_sent");
  history.push({ p50: sent && sent.now.p50_ns, p99: sent && sent.now.p99_ns, rate: hub.rates ? hub.rates.updates : 0 });
  quotes.serverIs(hub);
}

// Of a plant below a bridge: hops between the two hosts are not stated while the clocks are not compared.
function plantAbove(upstream) {
  const clock = upstream.clock;
  const clocks = clock
    ? duration(Math.abs(clock.ahead_ns)) + (clock.ahead_ns < 0 ? " behind" : " ahead") + ", ± " + duration(clock.bound_ns)
    : "not compared";
  const aeron = upstream.aeron;
  return "session " + (upstream.session || "–") + ", " + count(upstream.behind) + " ticks behind; " + count(upstream.recovered) + " requested again, " +
    count(upstream.left_lines) + " times left to the catch-up server" +
    (aeron ? "; Aeron: " + count(aeron.naks) + " NAKs, " + quantity(aeron.unread_bytes, "B") + " not read" : "") + "; clock " + clocks;
}

function plantsBelow(bridge) {
  const aeron = bridge.aeron;
  return (bridge.ended ? "ENDED, " : "") + "session " + bridge.session + ", up to tick " + count(bridge.sequence) + "; " + count(bridge.sent_again) +
    " sent again, " + count(bridge.unsent) + " datagrams not taken; " + count(bridge.catching_up) + " plants catch up, " + count(bridge.followers) +
    " follow over TCP" + (aeron ? "; Aeron: " + count(aeron.naks) + " NAKs, receiver's window " + quantity(aeron.window_bytes, "B") : "");
}

function whoLeads(lease) {
  const leads = lease.held ? "this plant, " + lease.holder + ", leads"
    : lease.leader ? lease.leader + " leads, this plant, " + lease.holder + ", follows" : "nobody is known to lead";
  const silent = lease.silent ? "; " + lease.silent + " of " + lease.witnesses + " witnesses SILENT" : "";
  return leads + silent + (lease.problem ? "; " + lease.problem : "");
}

// The symbols of all venues; a plant without venues has no such table.
function venues(now) {
  const feeds = now.feeds.filter((feed) => feed.venue);
  byId("venues-card").hidden = !feeds.length;
  if (!feeds.length) return;
  const ago = (ns) => (ns ? duration(Math.max(0, now.written_ns - ns)) + " ago" : "none yet");
  text(byId("venues-note"), feeds.map(({ name, venue }) => name + (venue.connected ? " connected, " : " NOT CONNECTED, ") +
    count(Math.max(0, venue.connections - 1)) + " reconnects, last message " + ago(venue.heard_ns)).join("; "));
  fill("venues", feeds.flatMap((feed) => feed.venue.symbols.map((symbol) => [
    symbol.symbol, feed.name, symbol.joined ? { kind: "good", words: "joined" } : { kind: "bad", words: "apart" },
    count(symbol.messages), count(symbol.snapshots), count(symbol.gaps), ago(symbol.heard_ns),
  ])).slice(0, MOST_ITEMS), "no symbols");
}

function facts(pairs) {
  const list = byId("plant-facts");
  while (list.children.length < 2 * pairs.length) list.appendChild(document.createElement(list.children.length % 2 ? "dd" : "dt"));
  pairs.forEach(([name, value], at) => {
    text(list.children[2 * at], name);
    text(list.children[2 * at + 1], value);
  });
}

// ---- the timeline

function draw() {
  const canvas = byId("timeline"), scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width) return;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = "11px system-ui, sans-serif";
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
  const left = 56, right = 56, top = 10, bottom = 18;
  const across = (at) => left + (width - left - right) * (at + KEPT - history.length) / (KEPT - 1);

  // Latency on a scale of powers of ten, from the lowest median to the highest percentile that is shown.
  const all = history.flatMap((point) => (point ? [point.p50, point.p99] : [])).filter((ns) => ns > 0);
  const low = Math.floor(Math.log10(Math.min(...all, 1e4))), high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...all, 1e5))));
  const up = (ns) => top + (height - top - bottom) * (1 - (Math.log10(ns) - low) / (high - low));
  const fastest = Math.max(10, ...history.map((point) => (point ? point.rate : 0)));
  const upRate = (rate) => top + (height - top - bottom) * (1 - rate / fastest);

  pen.strokeStyle = colour("--line");
  pen.fillStyle = colour("--faint");
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  for (let power = low; power <= high; power++) {
    const y = Math.round(up(10 ** power)) + 0.5;
    pen.beginPath(); pen.moveTo(left, y); pen.lineTo(width - right, y); pen.stroke();
    pen.textAlign = "right";
    pen.fillText(duration(10 ** power).replace(".0", ""), left - 6, y);
  }
  pen.textAlign = "left";
  pen.fillText(quantity(fastest, "/s"), width - right + 6, top);
  pen.fillText("0 /s", width - right + 6, height - bottom);
  pen.textBaseline = "bottom";
  pen.fillText("2 min ago", left, height);
  pen.textAlign = "right";
  pen.fillText("now", width - right, height);

  const curve = (value, y, name, wide) => {
    pen.strokeStyle = colour(name);
    pen.lineWidth = wide;
    pen.beginPath();
    let drawing = false;
    history.forEach((point, at) => {
      const v = point && value(point);
      if (v === null || v === undefined || !(v > 0 || name === "--rate")) { drawing = false; return; }
      if (drawing) pen.lineTo(across(at), y(v)); else pen.moveTo(across(at), y(v));
      drawing = true;
    });
    pen.stroke();
  };
  curve((point) => point.rate, upRate, "--rate", 1);
  curve((point) => point.p99, up, "--p99", 2);
  curve((point) => point.p50, up, "--p50", 2);
}

// ---- quotes

const ITEM_KINDS = { pending: "wait", open: "good", suspect: "bad", closed: "bad" };
const ITEM_WORDS = { pending: "waiting", open: "ok", suspect: "suspect", closed: "closed" };

const quotes = {
  consumer: null,
  address: null, // of the hub, once the counters have said it
  wasDown: false,
  rows: new Map(), // by item name
  touched: new Set(), // rows to paint with the next frame
  password: "",

  serverIs(hub) {
    if (!hub.address) return say("link", "bad", "quotes: this plant has no hub");
    const port = hub.address.slice(hub.address.lastIndexOf(":") + 1);
    const address = (hub.tls ? "wss://" : "ws://") + location.hostname + ":" + port + "/WebSocket";
    if (!this.rows.size && this.address === null) (hub.page_items || []).forEach((name) => this.add(name));
    if (address === this.address) return;
    this.address = address;
    this.connect();
  },

  connect() {
    if (this.consumer) this.consumer.close();
    this.consumer = new Consumer(this.address, {
      user: user(),
      password: this.password,
      fields: FIELDS,
      onState: (consumer) => this.consumer === consumer && this.state(consumer),
      onError: (error) => {
        // The badge says it of connections and logins.
        if (this.isOpen()) text(byId("quotes-note"), error.message.slice(0, 300));
      },
    });
    for (const row of this.rows.values()) this.subscribe(row);
  },

  isOpen() {
    return this.consumer !== null && this.consumer.state === "open";
  },

  state({ state, text: why }) {
    const [kind, words] = {
      connecting: ["wait", "connecting"],
      open: ["good", "open"],
      down: ["bad", "WebSocket down (" + why + "), trying again"],
      refused: ["bad", why.slice(0, 150)],
      closed: ["bad", "closed"],
    }[state];
    say("link", kind, "quotes: " + words);
    if (state === "open" || state === "refused") byId("login").hidden = state === "open";
    if (state !== "connecting") this.wasDown = state !== "open";
    for (const row of this.rows.values()) this.touch(row);
    alarm();
  },

  add(name) {
    name = name.trim();
    if (!name || this.rows.has(name) || this.rows.size >= MOST_ITEMS) return;
    const cells = byId("quotes").tBodies[0].insertRow();
    for (let column = 0; column < 10; column++) cells.insertCell();
    cells.cells[0].className = "name";
    for (const column of [1, 2, 3, 4, 5, 6, 7]) cells.cells[column].className = "n";
    for (const column of [1, 4, 6, 7]) cells.cells[column].classList.add("more");
    for (const column of [1, 2, 3, 4, 5, 6]) cells.cells[column].classList.add("price");
    text(cells.cells[0], name);
    cells.cells[0].title = name;
    cells.cells[8].appendChild(document.createElement("span"));
    const remove = cells.cells[9].appendChild(document.createElement("button"));
    remove.type = "button";
    text(remove, "×");
    remove.setAttribute("aria-label", "remove " + name);
    remove.onclick = () => this.remove(name);
    cells.dataset.item = name;
    const row = { name, cells, subscription: null, item: null, shown: {}, moved: {}, updates: 0 };
    this.rows.set(name, row);
    if (this.consumer) this.subscribe(row);
    this.touch(row);
    this.remember();
  },

  subscribe(row) {
    row.subscription = this.consumer.subscribe(row.name, (item, { type, fields }) => {
      if (type === "update") row.updates += 1;
      for (const field of FIELDS) {
        if (!(field in fields)) continue;
        const before = row.shown[field], value = (row.shown[field] = fields[field]);
        if (typeof before === "number" && typeof value === "number" && before !== value) row.moved[field] = value > before ? "up" : "down";
      }
      this.touch(row);
    });
    [row.item] = row.subscription.items;
  },

  remove(name) {
    const row = this.rows.get(name);
    if (row.subscription) row.subscription.unsubscribe();
    this.rows.delete(name);
    row.cells.remove();
    this.remember();
    alarm();
  },

  remember() {
    try {
      localStorage.setItem("items", JSON.stringify([...this.rows.keys()]));
    } catch (error) {
      // A browser that keeps nothing: they are gone with the page.
    }
  },

  touch(row) {
    if (!this.touched.size) requestAnimationFrame(() => this.paint());
    this.touched.add(row);
  },

  paint() {
    for (const row of this.touched) {
      const { item, moved } = row, fields = item ? item.fields : {}, { cells } = row.cells;
      [["BIDSIZE", count], ["BID", price], ["ASK", price], ["ASKSIZE", count], ["TRDPRC_1", price], ["TRDVOL_1", count]].forEach(
        ([field, shown], at) => {
          const cell = cells[at + 1];
          text(cell, fields[field] === undefined ? "" : shown(fields[field]));
          if (!moved[field] || shown !== price) return;
          cell.classList.remove("up", "down");
          cell.classList.add(moved[field]);
        },
      );
      text(cells[7], count(row.updates));
      row.moved = {};
      const [kind, words] = this.standing(item);
      text(cells[8].firstElementChild, words);
      cells[8].firstElementChild.className = "state " + kind;
      cells[8].title = item ? item.text : "";
      row.cells.dataset.state = words;
      row.cells.classList.toggle("doubtful", kind === "bad");
    }
    this.touched.clear();
    alarm();
  },

  standing(item) {
    const state = item ? item.state : "pending";
    if (!this.isOpen()) return state === "pending" ? ["wait", "not connected"] : ["bad", "old"];
    return [ITEM_KINDS[state], ITEM_WORDS[state]];
  },
};

// ---- what somebody should look at, in one line

function alarm() {
  const said = [];
  if (quotes.wasDown && quotes.consumer.state !== "refused") said.push("The WebSocket is down: these quotes are old.");
  const services = quotes.consumer ? [...quotes.consumer.services.values()].filter((service) => !service.up) : [];
  for (const service of services) said.push("The service " + service.name + " is down: " + service.text + ".");
  if (quotes.isOpen()) {
    const isSaid = (item) => services.some((service) => service.name === item.service);
    const bad = [...quotes.rows.values()].map((row) => row.item).filter((item) => item.state === "suspect" && item.text && !isSaid(item));
    for (const words of new Set(bad.map((item) => item.text))) said.push("Data is suspect: " + words + ".");
  }
  if (failures > 2) said.push("The plant does not answer.");
  const box = byId("alarm");
  text(box, said.slice(0, 4).join(" ").slice(0, 600));
  box.hidden = !said.length;
}

// ---- the rest

function user() {
  return byId("user").value.trim() || params.get("user") || "page";
}

byId("add").onsubmit = (event) => {
  event.preventDefault();
  byId("item").value.split(/[\s,]+/).forEach((name) => quotes.add(name));
  byId("item").value = "";
};

byId("login").onsubmit = (event) => {
  event.preventDefault();
  quotes.password = byId("password").value;
  byId("password").value = "";
  quotes.connect();
};

function remembered() {
  const asked = params.getAll("item").flatMap((names) => names.split(","));
  if (asked.length) return asked;
  try {
    const kept = JSON.parse(localStorage.getItem("items") || "[]");
    return Array.isArray(kept) ? kept.filter((name) => typeof name === "string") : [];
  } catch (error) {
    return [];
  }
}

remembered().forEach((name) => quotes.add(name));
window.addEventListener("resize", draw);
look();
