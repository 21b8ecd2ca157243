// @ts-check
/**
 * A consumer of real-time market data: OMM's simplified JSON (`tr_json2`, LSEG's WebSocket API) over a WebSocket.
 *
 *     const consumer = new Consumer("ws://localhost:14002/WebSocket", { user: "me" });
 *     consumer.subscribe(["AAPL", "MSFT"], (item) => console.log(item.name, item.fields.BID, item.state));
 *
 * The consumer logs in, requests items in batches, merges updates into the last values, answers pings, and connects again
 * after a loss; then it requests all items again. Nothing that a server sends makes the consumer throw.
 *
 * @module
 */

const LOGIN = 1; // stream ids
const DIRECTORY = 2;
const LAST_ID = 2 ** 31 - 1;
const BATCH = 100; // names in one request
const TURN_MS = 1000; // interval of the checks: silence, unanswered posts, items to request again
const SILENCE_MS = 60000; // until the server has stated its own limit
const POST_MS = 30000; // until a post counts as unanswered
const RETRY_MS = 500; // doubled with each attempt
const LONGEST_RETRY_MS = 15000;
const STEADY_MS = 10000; // age of a connection after whose loss the first pause is short again
const MOST_FIELDS = 4096; // of one item
const MOST_SERVICES = 1000;
const MOST_POSTS = 1000; // without an answer
const MOST_UNSENT = 1 << 20; // bytes that the browser has not sent yet: more posts are refused
const MOST_UNREADABLE = 100; // messages of one connection
const LONGEST_TEXT = 500;
const LONGEST_NAME = 255; // characters

/**
 * The state of an item.
 * * `pending`: requested, no image yet.
 * * `open`: the fields are current.
 * * `suspect`: the fields may be old: the server says so, its service is down, or the connection is lost.
 * * `closed`: no updates come. `text` says why. Requested again if it may recover, and after each login.
 *
 * @typedef {"pending" | "open" | "suspect" | "closed"} ItemState
 */

/**
 * The state of a consumer.
 * * `connecting`: until the server has accepted the login.
 * * `open`: logged in.
 * * `down`: the connection is lost or could not be made; the next attempt is due after a pause.
 * * `refused`: the server refused the login, or the browser refused the address. Final.
 * * `closed`: by `close()`. Final.
 *
 * @typedef {"connecting" | "open" | "down" | "refused" | "closed"} ConsumerState
 */

/**
 * A change of an item: an `image` replaces all fields, an `update` changes some, a `state` none.
 *
 * @typedef {object} Change
 * @property {"image" | "update" | "state"} type
 * @property {Record<string, any>} fields The fields of this message alone. `null` is a blank value.
 */

/** @typedef {(item: Item, change: Change) => void} Subscriber */

/**
 * @typedef {object} ConsumerOptions
 * @property {string} [user] Name of the login. Default `web`.
 * @property {string} [password]
 * @property {string} [token] Logs in with this token in place of a name.
 * @property {string} [service] Service of subscriptions and posts that name none. Default: the server's first one.
 * @property {string[]} [fields] Fields of subscriptions that name none. Default: all.
 * @property {string} [applicationId] Default `256`.
 * @property {string} [position] Default `127.0.0.1/net`.
 * @property {(consumer: Consumer) => void} [onState] Called when `state` or `services` has changed.
 * @property {(error: TapelineError) => void} [onError] Called for each error. Default: a warning on the console.
 */

/** An error: `message` has all of it. */
export class TapelineError extends Error {
  /**
   * @param {string} what
   * @param {{ where: string, expected?: string, hint?: string, code?: string, cause?: unknown }} more
   */
  constructor(what, { where, expected = "", hint = "", code = "", cause }) {
    super(`${what} (${where})${expected && `; expected ${expected}`}${hint && `; hint: ${hint}`}`, { cause });
    this.name = "TapelineError";
    /** What happened. */
    this.what = what;
    /** The server, message, item or argument. */
    this.where = where;
    this.expected = expected;
    this.hint = hint;
    /** The server's code, such as `NotEntitled`; else empty. */
    this.code = code;
  }
}

/** An item. All its subscribers share this object, which always has the last values. */
export class Item {
  /**
   * @param {string} name
   * @param {string} service
   */
  constructor(name, service) {
    this.name = name;
    /** Name of its service; empty until it is known. */
    this.service = service;
    /** The last value of each field. An image replaces this object. @type {Record<string, any>} */
    this.fields = Object.create(null);
    /** @type {ItemState} */
    this.state = "pending";
    /** Why it is suspect or closed. */
    this.text = "";
    /** The server's code for that, such as `NotFound`. */
    this.code = "";
  }
}

/** An item's stream from the server, shared by all its subscribers. */
class Stream {
  /**
   * @param {string} key
   * @param {string} name
   * @param {string} service As requested; empty for the server's choice.
   * @param {string[]} view
   */
  constructor(key, name, service, view) {
    this.key = key;
    this.item = new Item(name, service);
    this.service = service;
    this.view = view;
    this.id = 0; // not open
    this.request = 0; // id of the request that opened it
    this.fieldCount = 0;
    /** Its state without that of its service. @type {{ state: ItemState, text: string, code: string }} */
    this.own = { state: "pending", text: "", code: "" };
    /** By subscription, because two may have the same function. @type {Map<Subscription, Subscriber>} */
    this.subscribers = new Map();
  }
}

/** What `Consumer.subscribe` returns. */
export class Subscription {
  /** @type {(subscription: Subscription) => void} */
  #end;

  /**
   * @param {Item[]} items
   * @param {(subscription: Subscription) => void} end
   */
  constructor(items, end) {
    /** The items, in the order of their names. */
    this.items = items;
    this.#end = end;
  }

  /** Ends this subscription. The server is told if an item has no other. */
  unsubscribe() {
    this.#end(this);
  }
}

/** A connection to one server, which is made again after each loss, and the items that are open over it. */
export class Consumer {
  /** @type {ConsumerState} */
  state = "connecting";
  /** Why it is down or refused. */
  text = "";
  /** The server's services by their number; `text` says why one is down. @type {Map<number, { name: string, up: boolean, text: string }>} */
  services = new Map();

  #url;
  #options;
  /** @type {WebSocket | null} */
  #socket = null;
  #heard = 0; // when the last message came, ms
  #began = 0; // when the connection began, ms
  #silence = SILENCE_MS;
  #attempts = 0;
  #unreadable = 0;
  #nextId = DIRECTORY + 1;
  #nextPost = 1;
  #retry = 0; // timers
  #turns = 0;
  /** @type {Map<string, Stream>} */
  #streams = new Map();
  /** @type {Map<number, Stream>} */
  #open = new Map();
  /** To be requested at the end of this turn of the event loop. @type {Set<Stream>} */
  #wanted = new Set();
  /** To be requested again with the next check. @type {Set<Stream>} */
  #late = new Set();
  /** @type {Map<number, { until: number, where: string, resolve: () => void, reject: (error: TapelineError) => void }>} */
  #posts = new Map();
  /** @type {Set<{ changed: Set<Item>, wake: () => void }>} */
  #readers = new Set();
  /** @type {TapelineError | null} */
  #refusal = null;

  /**
   * Connects as soon as the caller's turn of the event loop is over.
   *
   * @param {string} url Such as `ws://localhost:14002/WebSocket`.
   * @param {ConsumerOptions} [options]
   */
  constructor(url, options = {}) {
    this.#url = String(url);
    this.#options = { ...options };
    queueMicrotask(() => this.state === "connecting" && this.#connect());
  }

  /**
   * Subscribes to items, now and after each new login. An item that is open already is not requested again, and its
   * subscriber is called with the fields that are there. Subscriptions of an item share it if service and fields are the same.
   *
   * @param {string | string[]} names
   * @param {Subscriber} [subscriber] Called after each change. `for await (const item of consumer)` can replace it.
   * @param {{ service?: string, fields?: string[] }} [options]
   * @returns {Subscription}
   */
  subscribe(names, subscriber = () => {}, { service = this.#options.service ?? "", fields = this.#options.fields ?? [] } = {}) {
    if (this.state === "closed") {
      throw new TapelineError("this consumer is closed", { where: "subscribe", hint: "make a new Consumer" });
    }
    const list = [...new Set(Array.isArray(names) ? names : [names])];
    for (const name of list) checkName(name);
    const view = [...new Set(fields)].sort();
    const streams = list.map((name) => this.#stream(name, service, view));
    const subscription = new Subscription(streams.map((stream) => stream.item), (ended) => this.#unsubscribe(ended, streams));
    for (const stream of streams) {
      stream.subscribers.set(subscription, subscriber);
      if (stream.id === 0) this.#want(stream);
      if (stream.own.state === "pending") continue;
      queueMicrotask(() => {
        if (stream.subscribers.has(subscription)) this.#call(subscriber, stream.item, { type: "image", fields: stream.item.fields });
      });
    }
    return subscription;
  }

  /**
   * Publishes fields of an item to its service, which may pass them on to all.
   *
   * @param {string} name
   * @param {Record<string, any>} fields
   * @param {{ service?: string }} [options]
   * @returns {Promise<void>} Resolved when the server acknowledges it; rejected with a `TapelineError` when the server refuses it
   *   or does not answer in 30 seconds, or the connection is lost: then it may or may not have been published.
   */
  async post(name, fields, { service = this.#options.service ?? this.#firstService() } = {}) {
    checkName(name);
    const where = `post to ${name} at ${this.#url}`;
    if (this.state !== "open" || !this.#socket) {
      throw new TapelineError("there is no connection", { where, expected: "a consumer in the state open", hint: "post it again later" });
    }
    if (!service) throw new TapelineError("the service is not known", { where, hint: "name it in the options of post or of the Consumer" });
    if (this.#posts.size >= MOST_POSTS || this.#socket.bufferedAmount > MOST_UNSENT) {
      throw new TapelineError("too many posts wait for their answers", { where, expected: `at most ${MOST_POSTS}`, hint: "await each post" });
    }
    const id = this.#nextPost++;
    await new Promise((resolve, reject) => {
      this.#posts.set(id, { until: performance.now() + POST_MS, where, resolve: () => resolve(undefined), reject });
      const key = { Name: name, Service: service };
      const update = { ID: 0, Type: "Update", Domain: "MarketPrice", Key: key, Fields: fields };
      this.#send({ ID: LOGIN, Type: "Post", Domain: "MarketPrice", Ack: true, PostID: id, Key: key, Message: update });
    });
  }

  /** Closes the connection for good. No subscriber is called any more, and loops over this consumer end. */
  close() {
    for (const stream of this.#streams.values()) stream.subscribers.clear();
    if (this.state !== "closed") this.#end("closed", "");
  }

  /**
   * Yields each item that has changed since it was yielded last, with its last values. A loop that is slower than the
   * updates therefore skips values, and at most one entry for each item waits.
   *
   * @returns {AsyncGenerator<Item, void, void>} Ends after `close()`; throws when the login is refused.
   */
  async *[Symbol.asyncIterator]() {
    const items = [...this.#streams.values()].map((stream) => stream.item);
    const reader = { changed: new Set(items.filter((item) => item.state !== "pending")), wake: () => {} };
    this.#readers.add(reader);
    try {
      for (;;) {
        for (const item of reader.changed) {
          reader.changed.delete(item);
          yield item;
        }
        if (this.#refusal) throw this.#refusal;
        if (this.state === "closed") return;
        await new Promise((resolve) => (reader.wake = () => resolve(undefined)));
      }
    } finally {
      this.#readers.delete(reader);
    }
  }

  // ---- the connection

  #connect() {
    this.#become("connecting", "");
    let socket;
    try {
      socket = new WebSocket(this.#url, "tr_json2");
    } catch (cause) {
      return this.#refuse(new TapelineError("the browser refuses this address", {
        where: this.#url, expected: "ws://HOST:PORT/WebSocket, or wss:// from a page of https://", cause,
      }));
    }
    this.#socket = socket;
    this.#began = this.#heard = performance.now();
    this.#silence = SILENCE_MS;
    this.#unreadable = 0;
    this.#turns = setInterval(() => this.#turn(), TURN_MS);
    let why = "nothing answers, or pages of this origin may not connect";
    socket.onopen = () => {
      why = "the server ended the connection";
      this.#send(this.#loginRequest());
    };
    socket.onmessage = (event) => this.#read(socket, event.data);
    socket.onclose = (event) => this.#lose(String(event.reason).slice(0, LONGEST_TEXT) || why);
  }

  #loginRequest() {
    const { user = "web", password, token, applicationId = "256", position = "127.0.0.1/net" } = this.#options;
    /** @type {Record<string, any>} */
    const elements = { ApplicationId: applicationId, Position: position };
    if (token) elements.AuthenticationToken = token;
    else if (password) elements.Password = { Type: "AsciiString", Data: password };
    return { ID: LOGIN, Domain: "Login", Key: { ...(token ? { NameType: "AuthnToken" } : { Name: user }), Elements: elements } };
  }

  #turn() {
    const now = performance.now();
    const since = this.state === "open" ? this.#heard : this.#began;
    if (now - since > this.#silence) return this.#lose(`nothing was heard for ${Math.round(this.#silence / 1000)} s`);
    if (this.state !== "open") return;
    if (now - this.#began > STEADY_MS) this.#attempts = 0;
    for (const [id, post] of this.#posts) {
      if (post.until > now) break;
      this.#posts.delete(id);
      post.reject(new TapelineError("the server has not answered", { where: post.where, hint: "it may or may not have been published" }));
    }
    for (const stream of this.#late) this.#want(stream);
    this.#late.clear();
  }

  /** @param {unknown} message */
  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  /** Ends the connection, its streams, and the posts that wait for answers. */
  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    clearInterval(this.#turns);
    clearTimeout(this.#retry);
    if (socket) {
      // Ignore what it still receives.
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
    for (const stream of this.#open.values()) stream.id = 0;
    this.#open.clear();
    this.#late.clear();
    this.services.clear();
    for (const { where, reject } of this.#posts.values()) {
      reject(new TapelineError("the connection is lost", { where, hint: "it may or may not have been published" }));
    }
    this.#posts.clear();
  }

  /** @param {string} why */
  #lose(why) {
    this.#drop();
    const pause = Math.min(RETRY_MS * 2 ** this.#attempts, LONGEST_RETRY_MS) * (0.75 + Math.random() / 2);
    this.#attempts = Math.min(this.#attempts + 1, 16);
    this.#retry = setTimeout(() => this.#connect(), pause);
    this.#become("down", why);
    this.#report(new TapelineError(`the connection is down: ${why}`, {
      where: this.#url, expected: "a server of tr_json2",
      hint: "the next attempt follows by itself; is the port right, and does the server let in pages of this origin?",
    }));
    for (const stream of this.#streams.values()) {
      if (["open", "suspect"].includes(stream.own.state)) this.#put(stream, "suspect", `the connection is down: ${why}`);
    }
  }

  /** @param {TapelineError} error */
  #refuse(error) {
    this.#refusal = error;
    this.#end("refused", error.what);
    this.#report(error);
  }

  /**
   * @param {"refused" | "closed"} state
   * @param {string} text
   */
  #end(state, text) {
    this.#drop();
    this.#become(state, text);
    for (const stream of this.#streams.values()) this.#put(stream, "closed", text);
    if (state === "closed") this.#streams.clear();
    for (const reader of this.#readers) reader.wake();
  }

  /**
   * @param {ConsumerState} state
   * @param {string} text
   */
  #become(state, text) {
    this.state = state;
    this.text = text;
    this.#call(this.#options.onState, this);
  }

  // ---- what the server sends

  /**
   * @param {WebSocket} socket
   * @param {unknown} text
   */
  #read(socket, text) {
    this.#heard = performance.now();
    let messages;
    try {
      messages = JSON.parse(/** @type {string} */ (text));
    } catch (cause) {
      return this.#malformed("a text is not JSON", cause);
    }
    for (const message of Array.isArray(messages) ? messages : [messages]) {
      // A subscriber may have closed the consumer.
      if (this.#socket !== socket) return;
      try {
        this.#take(record(message, "a message"));
      } catch (cause) {
        this.#malformed(cause instanceof Error ? cause.message : "a message cannot be read", cause);
      }
    }
  }

  /**
   * @param {string} what
   * @param {unknown} cause
   */
  #malformed(what, cause) {
    this.#report(new TapelineError(what, { where: `a message from ${this.#url}`, expected: "a message of tr_json2", cause }));
    this.#unreadable += 1;
    if (this.#unreadable >= MOST_UNREADABLE) this.#lose(`${MOST_UNREADABLE} of its messages could not be read`);
  }

  /** @param {Record<string, any>} message */
  #take(message) {
    const { ID: id, Type: type } = message;
    if (type === "Ping") return this.#send({ Type: "Pong" });
    if (type === "Error") return this.#requestFailed(message);
    if (type === "Ack") return this.#answered(message);
    if (id === LOGIN) return this.#login(message);
    if (id === DIRECTORY) return this.#directory(message);
    const stream = this.#open.get(id);
    if (!stream) return; // such as of a batch, or of an item that was closed meanwhile
    if (type === "Refresh") this.#image(stream, message);
    else if (type === "Update") this.#merge(stream, message.Fields, "update");
    else if (type === "Status" && message.State !== undefined) this.#status(stream, record(message.State, "State"), true);
  }

  /** @param {Record<string, any>} message */
  #login(message) {
    const state = record(message.State ?? {}, "State");
    const { Stream: stream = "Open", Data: data = "Ok" } = state;
    const text = words(state.Text) || words(state.Code) || "no reason given";
    if (stream === "ClosedRecover") return this.#lose(`the login is refused for now: ${text}`);
    if (stream !== "Open") {
      return this.#refuse(new TapelineError(`the login is refused: ${text}`, {
        where: this.#url, code: words(state.Code), hint: "check user, password or token, and make a new Consumer",
      }));
    }
    // A login may be accepted more than once, and it may be pending.
    if (message.Type !== "Refresh" || data === "Suspect" || this.state === "open") return;
    const seconds = record(message.Elements ?? {}, "Elements").PingTimeout;
    if (seconds >= 1 && seconds <= 3600) this.#silence = 1000 * seconds;
    this.#nextId = DIRECTORY + 1;
    this.#become("open", "");
    this.#send({ ID: DIRECTORY, Domain: "Source", Key: { Filter: 7 } });
    for (const stream of this.#streams.values()) this.#want(stream);
  }

  /** @param {Record<string, any>} message */
  #directory(message) {
    const before = this.#servicesDown();
    const up = new Set([...this.services.values()].filter((service) => service.up).map((service) => service.name));
    for (const entry of list(record(message.Map ?? {}, "Map").Entries, "Map.Entries")) this.#service(record(entry, "Map.Entries"));
    const down = this.#servicesDown();
    for (const stream of this.#streams.values()) {
      const { service } = stream.item;
      if (before.get(service) !== down.get(service)) this.#put(stream, stream.own.state, stream.own.text, stream.own.code);
    }
    for (const { name, up: isUp } of this.services.values()) {
      if (!isUp || up.has(name)) continue;
      // Its items may be there now.
      for (const stream of this.#streams.values()) if (stream.service === name && stream.own.state === "closed") this.#want(stream);
    }
    this.#call(this.#options.onState, this);
  }

  /** @param {Record<string, any>} entry */
  #service(entry) {
    if (entry.Action === "Delete") return void this.services.delete(entry.Key);
    const known = this.services.get(entry.Key);
    if (typeof entry.Key !== "number" || (!known && this.services.size >= MOST_SERVICES)) {
      throw new Error(`service ${words(entry.Key)} is not a number, or one of more than ${MOST_SERVICES}`);
    }
    const service = known ?? { name: "", up: true, text: "" };
    this.services.set(entry.Key, service);
    for (const filter of list(record(entry.FilterList ?? {}, "FilterList").Entries, "FilterList.Entries")) {
      const { ID: id, Elements } = record(filter, "FilterList.Entries");
      const elements = record(Elements ?? {}, "Elements");
      if (id === 1) service.name = words(element(elements.Name)) || service.name;
      if (id !== 2 || elements.ServiceState === undefined) continue;
      service.up = element(elements.ServiceState) !== 0;
      const status = record(element(elements.Status) ?? {}, "Status");
      service.text = service.up ? "" : words(status.Text) || "no reason given";
    }
  }

  /** Why services are down, by their names. */
  #servicesDown() {
    const down = [...this.services.values()].filter(({ name, up }) => name !== "" && !up);
    return new Map(down.map(({ name, text }) => [name, text]));
  }

  #firstService() {
    return this.services.size ? this.services.values().next().value?.name : "";
  }

  /**
   * @param {Stream} stream
   * @param {Record<string, any>} message
   */
  #image(stream, message) {
    const { item } = stream, { Service: service } = record(message.Key ?? {}, "Key");
    const state = record(message.State ?? {}, "State");
    if (typeof service === "string") item.service = service;
    else if (this.services.has(service)) item.service = this.services.get(service)?.name ?? "";
    // Further parts of one image do not clear what the parts before them have brought.
    if (message.ClearCache !== false) {
      item.fields = Object.create(null);
      stream.fieldCount = 0;
    }
    this.#status(stream, state, false);
    this.#merge(stream, message.Fields, "image");
  }

  /**
   * @param {Stream} stream
   * @param {unknown} sent
   * @param {"image" | "update"} type
   */
  #merge(stream, sent, type) {
    const fields = record(sent ?? {}, "Fields"), { item } = stream;
    for (const name in fields) {
      if (!(name in item.fields) && ++stream.fieldCount > MOST_FIELDS) {
        stream.fieldCount -= 1;
        throw new Error(`${item.name} has more than ${MOST_FIELDS} fields`);
      }
      item.fields[name] = fields[name];
    }
    this.#tell(stream, { type, fields });
  }

  /**
   * @param {Stream} stream
   * @param {Record<string, any>} state
   * @param {boolean} tells
   */
  #status(stream, state, tells) {
    const { Stream: of = "Open", Data: data = "Ok" } = state;
    const code = words(state.Code), text = words(state.Text) || code;
    if (of === "Open") return this.#put(stream, data === "Suspect" ? "suspect" : "open", text, code, tells);
    this.#forget(stream);
    if (of === "ClosedRecover") this.#late.add(stream);
    this.#put(stream, "closed", text, code, tells);
  }

  /** @param {Record<string, any>} message */
  #requestFailed(message) {
    const text = words(message.Text) || "no reason given";
    const error = new TapelineError(`the server cannot read a request: ${text}`, {
      where: `request ${words(message.ID)} to ${this.#url}`, hint: "check the names of items, service and fields",
    });
    if (message.ID === LOGIN && this.state === "connecting") return this.#refuse(error);
    this.#report(error);
    for (const stream of this.#open.values()) {
      if (stream.request !== message.ID) continue;
      this.#forget(stream);
      this.#put(stream, "closed", text, "Error");
    }
  }

  /** @param {Record<string, any>} message */
  #answered(message) {
    const post = this.#posts.get(message.AckID);
    if (!post) return;
    this.#posts.delete(message.AckID);
    const code = words(message.NakCode);
    if (!code || code === "None") return post.resolve();
    post.reject(new TapelineError(`the post is refused: ${words(message.Text) || code}`, { where: post.where, code }));
  }

  // ---- items

  /**
   * @param {string} name
   * @param {string} service
   * @param {string[]} view
   */
  #stream(name, service, view) {
    const key = JSON.stringify([name, service, view]);
    const stream = this.#streams.get(key) ?? new Stream(key, name, service, view);
    this.#streams.set(key, stream);
    if (this.#refusal) this.#put(stream, "closed", this.text);
    return stream;
  }

  /** @param {Stream} stream */
  #want(stream) {
    if (this.#wanted.size === 0) queueMicrotask(() => this.#request());
    this.#wanted.add(stream);
  }

  /** Requests the wanted items, in batches of the same service and fields. A batch takes the ids behind its own, one for each name. */
  #request() {
    const batches = new Map();
    for (const stream of this.#wanted) {
      if (stream.id !== 0 || this.#streams.get(stream.key) !== stream) continue;
      const of = JSON.stringify([stream.service, stream.view]);
      const batch = batches.get(of) ?? [];
      batches.set(of, batch);
      batch.push(stream);
    }
    this.#wanted.clear();
    // Without a login they are requested after it.
    if (this.state !== "open") return;
    for (const all of batches.values()) {
      for (let at = 0; at < all.length; at += BATCH) this.#batch(all.slice(at, at + BATCH));
    }
  }

  /** @param {Stream[]} streams */
  #batch(streams) {
    const request = this.#nextId, isBatch = streams.length > 1, [{ service, view }] = streams;
    if (request > LAST_ID - streams.length) return this.#lose("this connection has used all ids of streams");
    this.#nextId += streams.length + (isBatch ? 1 : 0);
    streams.forEach((stream, at) => {
      stream.request = request;
      stream.id = request + at + (isBatch ? 1 : 0);
      this.#open.set(stream.id, stream);
    });
    const names = streams.map((stream) => stream.item.name);
    const key = { Name: isBatch ? names : names[0], ...(service && { Service: service }) };
    this.#send({ ID: request, Key: key, ...(view.length && { View: view }) });
  }

  /** @param {Stream} stream */
  #forget(stream) {
    this.#open.delete(stream.id);
    stream.id = 0;
  }

  /**
   * @param {Subscription} subscription
   * @param {Stream[]} streams
   */
  #unsubscribe(subscription, streams) {
    const ids = [];
    for (const stream of streams) {
      if (!stream.subscribers.delete(subscription) || stream.subscribers.size) continue;
      if (stream.id !== 0) ids.push(stream.id);
      this.#forget(stream);
      this.#streams.delete(stream.key);
      this.#late.delete(stream);
      for (const reader of this.#readers) reader.changed.delete(stream.item);
    }
    if (ids.length) this.#send({ ID: ids.length > 1 ? ids : ids[0], Type: "Close" });
  }

  /**
   * Sets the state of an item, which is that of its service if this is down.
   *
   * @param {Stream} stream
   * @param {ItemState} state
   * @param {string} text
   * @param {string} code
   */
  #put(stream, state, text, code = "", tells = true) {
    const { item } = stream, down = state === "open" ? this.#servicesDown().get(item.service) : undefined;
    stream.own = { state, text, code };
    item.state = down === undefined ? state : "suspect";
    item.text = down === undefined ? text : `the service ${item.service} is down: ${down}`;
    item.code = code;
    if (tells) this.#tell(stream, { type: "state", fields: {} });
  }

  /**
   * @param {Stream} stream
   * @param {Change} change
   */
  #tell(stream, change) {
    for (const reader of this.#readers) {
      reader.changed.add(stream.item);
      reader.wake();
    }
    for (const subscriber of stream.subscribers.values()) this.#call(subscriber, stream.item, change);
  }

  /**
   * Calls a function of the program: what it throws is reported, and affects nobody else.
   *
   * @template {any[]} A
   * @param {((...args: A) => void) | undefined} callback
   * @param {A} args
   */
  #call(callback, ...args) {
    try {
      callback?.(...args);
    } catch (cause) {
      this.#report(new TapelineError("a function of the program has thrown", { where: callback?.name || "a callback", cause }));
    }
  }

  /** @param {TapelineError} error */
  #report(error) {
    try {
      (this.#options.onError ?? console.warn)(error);
    } catch (thrown) {
      console.error(thrown, error);
    }
  }
}

// ---- parts of messages, which may be anything

/**
 * @param {unknown} value
 * @param {string} what
 * @returns {Record<string, any>}
 */
function record(value, what) {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Error(`${what} is not an object`);
}

/**
 * @param {unknown} value
 * @param {string} what
 * @returns {unknown[]}
 */
function list(value, what) {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw new Error(`${what} is not an array`);
}

/**
 * A text or number as a text of limited length; anything else is empty.
 *
 * @param {unknown} value
 */
function words(value) {
  return typeof value === "string" || typeof value === "number" ? String(value).slice(0, LONGEST_TEXT) : "";
}

/**
 * The value of an element, which may stand beside its type.
 *
 * @param {any} value
 */
function element(value) {
  return typeof value === "object" && value !== null && "Data" in value && "Type" in value ? value.Data : value;
}

/** @param {string} name */
function checkName(name) {
  if (typeof name === "string" && name !== "" && name.length <= LONGEST_NAME) return;
  throw new TapelineError(`${JSON.stringify(name)} is no name of an item`, { where: "names", expected: `a text of 1 to ${LONGEST_NAME} characters` });
}
