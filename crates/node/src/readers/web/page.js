// The live page: quotes over the hub's own WebSocket port, like any client's; all else from the plant's counters.
// Nothing that comes from outside becomes markup: texts are set as texts.
"use strict";

const FIELDS = ["BID", "BIDSIZE", "ASK", "ASKSIZE", "TRDPRC_1", "TRDVOL_1"];
const LOOK_MS = 1000; // the counters are written once a second
const SILENCE_MS = 60000; // the hub pings three times as often
const RETRY_MS = [500, 1000, 2000, 4000];
const AGAIN_MS = 1000; // until an item that may recover is asked for again
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
  fill("services", (hub.services || []).map((service) => [
    service.name, service.up ? { kind: "good", words: "up" } : { kind: "bad", words: "down" }, service.text || "–",
  ]), "no services yet");
  facts([
    ["Process", now.pid + ", version " + now.version + ", up " + duration(now.written_ns - now.started_ns)],
    ["Ticks", count(now.ticks) + ", " + quantity(now.ticks_per_second, "ticks/s")],
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

const quotes = {
  socket: null,
  address: null, // of the hub, once the counters have said it
  wanted: null, // whether the hub is to be connected to
  isOpen: false, // logged in
  attempts: 0,
  timer: 0,
  silence: 0,
  nextId: 3,
  items: new Map(), // by name
  ids: new Map(), // name by stream
  late: new Set(), // names to ask for again
  lateTimer: 0,
  services: new Map(), // by number: name, and what was said if it is down
  secret: "",

  serverIs(hub) {
    if (!hub.address) return say("link", "bad", "quotes: this plant has no hub");
    const port = hub.address.slice(hub.address.lastIndexOf(":") + 1);
    const address = (hub.tls ? "wss://" : "ws://") + location.hostname + ":" + port + "/WebSocket";
    if (!this.items.size && this.address === null) (hub.page_items || []).forEach((name) => this.add(name));
    if (address !== this.address) {
      this.address = address;
      this.wanted = true;
      if (this.socket) this.socket.close();
      else this.connect();
    }
  },

  connect() {
    clearTimeout(this.timer);
    if (this.socket || !this.wanted) return;
    say("link", "wait", "quotes: connecting");
    let socket;
    try {
      socket = new WebSocket(this.address, "tr_json2");
    } catch (error) {
      return this.down("this address is refused by the browser");
    }
    this.socket = socket;
    socket.onopen = () => {
      this.heard();
      say("link", "wait", "quotes: logging in");
      const key = { Name: user(), Elements: { ApplicationId: "256", Position: "127.0.0.1/net" } };
      if (this.secret) key.Elements.Password = { Type: "AsciiString", Data: this.secret };
      this.send({ ID: 1, Domain: "Login", Key: key });
    };
    socket.onmessage = (event) => {
      this.heard();
      let messages;
      try {
        messages = JSON.parse(event.data);
      } catch (error) {
        return;
      }
      for (const message of Array.isArray(messages) ? messages : [messages]) this.take(message);
    };
    socket.onclose = (event) => {
      if (this.socket === socket) this.down(event.reason || "the hub is gone or let nobody in");
    };
  },

  // The WebSocket is down: whatever is shown is old from here on.
  down(why) {
    this.socket = null;
    this.isOpen = false;
    this.services.clear();
    this.ids.clear();
    clearTimeout(this.silence);
    for (const item of this.items.values()) if (item.state !== "wait") this.set(item, "stale", "no connection");
    if (!this.wanted) return;
    const wait = RETRY_MS[Math.min(this.attempts++, RETRY_MS.length - 1)] * (0.75 + Math.random() / 2);
    say("link", "bad", "quotes: WebSocket down (" + why + "), trying again");
    this.timer = setTimeout(() => this.connect(), wait);
    alarm();
  },

  heard() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.socket && this.socket.close(4000, "nothing was heard"), SILENCE_MS);
  },

  send(message) {
    if (this.socket && this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  },

  take(message) {
    const state = message.State || {};
    if (message.Type === "Ping") return this.send({ Type: "Pong" });
    if (message.Domain === "Login") return this.login(message, state);
    if (message.Domain === "Source") return this.directory(message);
    const name = (message.Key && message.Key.Name) || this.ids.get(message.ID);
    const item = this.items.get(name);
    if (!item || message.Type === "Error") {
      if (message.Type === "Error") text(byId("quotes-note"), String(message.Text || "the hub could not read a request").slice(0, 200));
      return;
    }
    if (item.id === null || message.Type === "Refresh") {
      item.id = message.ID;
      this.ids.set(message.ID, name);
    }
    if (item.id !== message.ID) return;
    if (message.Type === "Refresh") item.fields = {};
    if (message.Key && message.Key.Service !== undefined) item.service = message.Key.Service;
    if (message.Type === "Update") item.updates += 1;
    if (message.Fields) {
      for (const field of FIELDS) {
        if (!(field in message.Fields)) continue;
        const before = item.fields[field], value = message.Fields[field];
        if (typeof before === "number" && typeof value === "number" && before !== value) item.moved[field] = value > before ? "up" : "down";
        item.fields[field] = value;
      }
    }
    if (message.State) {
      const closed = state.Stream && !["Open", "NonStreaming"].includes(state.Stream);
      if (closed) this.ids.delete(item.id), (item.id = null);
      if (state.Stream === "ClosedRecover") this.askLater(name);
      this.set(item, closed ? "closed" : state.Data === "Suspect" ? "suspect" : "ok", state.Text || state.Code || "");
    } else if (message.Type === "Refresh") this.set(item, "ok", "");
    this.touch(item);
  },

  login(message, state) {
    if (message.Type === "Refresh" && (!state.Stream || state.Stream === "Open") && state.Data !== "Suspect") {
      this.isOpen = true;
      this.attempts = 0;
      byId("login").hidden = true;
      say("link", "good", "quotes: open");
      this.send({ ID: 2, Domain: "Source", Key: { Filter: 7 } });
      this.nextId = 3;
      const names = [...this.items.keys()];
      for (const item of this.items.values()) item.id = null;
      if (names.length) this.ask(names);
    } else if (state.Stream && state.Stream !== "Open") {
      this.wanted = false;
      this.isOpen = false;
      say("link", "bad", "quotes: login refused (" + String(state.Text || state.Code || "").slice(0, 100) + ")");
      byId("login").hidden = false;
      if (this.socket) this.socket.close();
      this.socket = null;
    }
    alarm();
  },

  // A batch takes the ids behind its own, one for each name.
  ask(names) {
    const id = this.nextId;
    this.nextId += names.length + 1;
    names.forEach((name, at) => this.ids.set(names.length === 1 ? id : id + 1 + at, name));
    const key = { Name: names.length === 1 ? names[0] : names };
    this.send({ ID: id, Key: key, View: FIELDS });
    for (const name of names) this.set(this.items.get(name), "wait", "");
  },

  // Items that may recover, such as those of a plant whose feed has not begun, are asked for again, all at once.
  askLater(name) {
    this.late.add(name);
    if (this.lateTimer) return;
    this.lateTimer = setTimeout(() => {
      this.lateTimer = 0;
      const names = [...this.late].filter((name) => this.items.has(name) && this.items.get(name).state === "closed");
      this.late.clear();
      if (this.isOpen && names.length) this.ask(names);
    }, AGAIN_MS);
  },

  directory(message) {
    const entries = (message.Map && message.Map.Entries) || [];
    for (const entry of entries) {
      const service = this.services.get(entry.Key) || { name: "", down: "" };
      this.services.set(entry.Key, service);
      for (const filter of (entry.FilterList && entry.FilterList.Entries) || []) {
        const elements = filter.Elements || {};
        const value = (name) => {
          const element = elements[name];
          return element !== null && typeof element === "object" && "Data" in element && "Type" in element ? element.Data : element;
        };
        const status = value("Status") || {};
        if (filter.ID === 1 && value("Name")) service.name = String(value("Name"));
        if (filter.ID === 2 && value("ServiceState") !== undefined) {
          service.down = value("ServiceState") === 0 ? String(status.Text || "no reason given") : "";
        }
      }
    }
    for (const item of this.items.values()) this.touch(item);
    alarm();
  },

  // What was said of an item's service, if that is down.
  isDown(item) {
    for (const [number, service] of this.services) if (service.down && [number, service.name].includes(item.service)) return service.down;
    return "";
  },

  add(name) {
    name = name.trim();
    if (!name || this.items.has(name) || this.items.size >= MOST_ITEMS) return;
    const row = byId("quotes").tBodies[0].insertRow();
    for (let column = 0; column < 10; column++) row.insertCell();
    row.cells[0].className = "name";
    for (const column of [1, 2, 3, 4, 5, 6, 7]) row.cells[column].className = "n";
    for (const column of [1, 4, 6, 7]) row.cells[column].classList.add("more");
    for (const column of [1, 2, 3, 4, 5, 6]) row.cells[column].classList.add("price");
    text(row.cells[0], name);
    row.cells[0].title = name;
    row.cells[8].appendChild(document.createElement("span"));
    const remove = row.cells[9].appendChild(document.createElement("button"));
    remove.type = "button";
    text(remove, "×");
    remove.setAttribute("aria-label", "remove " + name);
    remove.onclick = () => this.remove(name);
    row.dataset.item = name;
    const item = { name, row, service: null, id: null, state: "wait", text: "", fields: {}, moved: {}, updates: 0 };
    this.items.set(name, item);
    this.touch(item);
    if (this.isOpen) this.ask([name]);
    this.remember();
  },

  remove(name) {
    const item = this.items.get(name);
    if (item.id !== null) this.send({ ID: item.id, Type: "Close" });
    this.ids.delete(item.id);
    this.items.delete(name);
    item.row.remove();
    this.remember();
    alarm();
  },

  remember() {
    try {
      localStorage.setItem("items", JSON.stringify([...this.items.keys()]));
    } catch (error) {
      // A browser that keeps nothing: they are gone with the page.
    }
  },

  set(item, state, words) {
    item.state = state;
    item.text = words;
    this.touch(item);
  },

  touch(item) {
    if (!this.touched.size) requestAnimationFrame(() => this.paint());
    this.touched.add(item);
  },
  touched: new Set(),

  paint() {
    for (const item of this.touched) {
      const { row, fields } = item, cell = row.cells;
      text(cell[1], fields.BIDSIZE === undefined ? "" : count(fields.BIDSIZE));
      text(cell[2], fields.BID === undefined ? "" : price(fields.BID));
      text(cell[3], fields.ASK === undefined ? "" : price(fields.ASK));
      text(cell[4], fields.ASKSIZE === undefined ? "" : count(fields.ASKSIZE));
      text(cell[5], fields.TRDPRC_1 === undefined ? "" : price(fields.TRDPRC_1));
      text(cell[6], fields.TRDVOL_1 === undefined ? "" : count(fields.TRDVOL_1));
      text(cell[7], count(item.updates));
      for (const [column, field] of [[2, "BID"], [3, "ASK"], [5, "TRDPRC_1"]]) {
        if (!item.moved[field]) continue;
        cell[column].classList.remove("up", "down");
        cell[column].classList.add(item.moved[field]);
      }
      item.moved = {};
      const [kind, words] = this.standing(item);
      text(cell[8].firstElementChild, words);
      cell[8].firstElementChild.className = "state " + kind;
      cell[8].title = item.text;
      row.dataset.state = words;
      row.classList.toggle("doubtful", kind === "bad");
    }
    this.touched.clear();
    alarm();
  },

  standing(item) {
    if (item.state === "wait") return ["wait", this.isOpen ? "waiting" : "not connected"];
    if (item.state === "closed") return ["bad", "closed"];
    if (item.state === "stale") return ["bad", "old"];
    if (item.state === "suspect" || this.isDown(item)) return ["bad", "suspect"];
    return ["good", "ok"];
  },
};

// ---- what somebody should look at, in one line

function alarm() {
  const said = [];
  if (quotes.wanted && !quotes.isOpen && quotes.attempts > 0) said.push("The WebSocket is down: these quotes are old.");
  for (const service of quotes.services.values()) if (service.down) said.push("The service " + service.name + " is down: " + service.down + ".");
  if (quotes.isOpen) {
    const bad = [...quotes.items.values()].filter((item) => item.state === "suspect" && item.text && !quotes.isDown(item));
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
  quotes.secret = byId("password").value;
  byId("password").value = "";
  quotes.wanted = true;
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
