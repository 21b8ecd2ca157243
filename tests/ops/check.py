#!/usr/bin/env python3
"""Checks ops/: a real Prometheus with the rules, real plants, and for each alert its fault.

    tests/ops/check.py TAPELINE [ALERT ...]

Every query of the dashboard must give data of a running plant. Each alert must fire when its fault is planted, on that plant alone, and must
end when the operator has done what docs/runbook.md says. Waiting times of the rules are shortened: `for` to 1 s, windows of 5 m to 15 s.
"""

import concurrent.futures
import contextlib
import gzip
import http.server
import json
import os
import pathlib
import queue
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

from tracing import stopped_thread
from venue import venue

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Far longer than anything here takes: a check that waits this long has failed.
PATIENCE_S = 120
WINDOW = "15s"
LISTENING = re.compile(r"127\.0\.0\.1:\d+")


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(what, condition):
    """The first true value of `condition`, or an error that names `what`."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        value = condition()
        if value:
            return value
        time.sleep(0.2)
    raise AssertionError(f"waited {PATIENCE_S} s in vain for {what}")


class World:
    """A folder, a Prometheus, and everything that was started."""

    def __init__(self, tapeline):
        self.tapeline = str(pathlib.Path(tapeline).resolve())
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tapeline-ops-"))
        self.targets = set()
        self.lock = threading.Lock()
        self.children = []

    def start(self, *command, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | options
        child = subprocess.Popen([str(word) for word in command], **options)
        with self.lock:
            self.children.append(child)
        return child

    def run(self, *command, **options):
        return subprocess.run([self.tapeline, *map(str, command)], capture_output=True, timeout=PATIENCE_S, **options)

    def tool(self, *words):
        return self.start(self.tapeline, *words)

    def end(self):
        for child in reversed(self.children):
            # Whatever was stopped must go on to end.
            for what in (signal.SIGCONT, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    child.send_signal(what)
            child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        for left in pathlib.Path("/dev/shm").glob(f"tapeline*ops-{os.getpid()}-*"):
            left.unlink(missing_ok=True)

    def watch(self, instance):
        with self.lock:
            self.targets.add(instance)
            new = self.folder / "targets.new"
            new.write_text(json.dumps([{"targets": sorted(self.targets)}]))
            new.rename(self.folder / "targets.json")

    def prometheus(self):
        rules = (ROOT / "ops/prometheus/tapeline.rules.yml").read_text()
        rules = re.sub(r"for: \w+", "for: 1s", rules).replace("[5m]", f"[{WINDOW}]")
        (self.folder / "rules.yml").write_text(rules)
        (self.folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\nscrape_configs:\n"
            "  - job_name: tapeline\n    file_sd_configs:\n      - {files: [targets.json], refresh_interval: 1s}\n"
        )
        (self.folder / "targets.json").write_text("[]")
        self.port = free_port()
        self.start(
            "prometheus",
            f"--config.file={self.folder}/prometheus.yml",
            f"--storage.tsdb.path={self.folder}/data",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--log.level=error",
            stderr=(self.folder / "prometheus.log").open("w"),
        )
        until("Prometheus", lambda: self.get("/-/ready"))

    def get(self, path, **query):
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(query)}"
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode()
        return None

    def query(self, expression):
        answer = json.loads(self.get("/api/v1/query", query=expression) or '{"status":"","error":"no answer"}')
        assert answer["status"] == "success", f"{expression}: {answer.get('error')}"
        return answer["data"]["result"]

    def firing(self, alert, instance):
        alerts = json.loads(self.get("/api/v1/alerts") or '{"data":{"alerts":[]}}')["data"]["alerts"]
        is_it = {"alertname": alert, "instance": instance}.items()
        return [one for one in alerts if one["state"] == "firing" and is_it <= one["labels"].items()]

    def fires(self, alert, plant):
        found = until(f"{alert} to fire", lambda: self.firing(alert, plant.web))[0]
        summary = found["annotations"]["summary"]
        assert "{{" not in summary and "no value" not in summary, summary
        print(f"  {alert} fires: {summary}", flush=True)

    def clears(self, alert, plant):
        until(f"{alert} to end", lambda: not self.firing(alert, plant.web))
        print(f"  {alert} has ended", flush=True)


class Plant:
    """A plant with a page, which the Prometheus watches."""

    def __init__(self, world, name, text="", hub="", feed=True, plant=""):
        self.world, self.name = world, f"ops-{os.getpid()}-{name}"
        self.folder = world.folder / name
        self.folder.mkdir()
        self.feed_port, web_port = free_port(socket.SOCK_DGRAM), free_port()
        self.web = f"127.0.0.1:{web_port}"
        feeds = (
            f'[[feed]]\nname = "itch"\nprotocol = "itch50-moldudp64"\nstale_after = "1s"\nreceive_buffer = "64KiB"\n'
            f'[[feed.line]]\naddress = "127.0.0.1:{self.feed_port}"\n'
        )
        self.text = (
            f'[plant]\nname = "TAPELINE"\nring = "{self.name}"\n{plant}\n{feeds if feed else ""}{text}\n'
            f"[hub]\nport = 0\n{hub}\n[hub.web]\nport = {web_port}\n"
        )
        self.start()
        world.watch(self.web)
        until(f"{name} in Prometheus", lambda: [one for one in world.query(f'up{{instance="{self.web}"}} == 1')])

    def start(self):
        (self.folder / "plant.toml").write_text(self.text)
        with (self.folder / "plant.log").open("a") as log, (self.folder / "plant.out").open("w") as out:
            self.process = self.world.start(
                self.world.tapeline, "plant", "--config", self.folder / "plant.toml", "--format", "json", stdout=out, stderr=log
            )
        self.ready = json.loads(until(f"{self.name} to be ready", self.first_line))
        self.hub = self.ready.get("hub")

    def first_line(self):
        assert self.process.poll() is None, (self.folder / "plant.log").read_text()
        text = (self.folder / "plant.out").read_text()
        return text.splitlines()[0] if "\n" in text else None

    def kill(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(PATIENCE_S)

    def exchange(self, rate="2k", **options):
        words = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", value)]
        to = f"127.0.0.1:{self.feed_port}"
        return self.world.tool("feed", "simulate", "--to", to, "--rate", rate, "--duration", "600s", *words)

    def send(self, sequence, *messages, session=b"OPS"):
        """A datagram of MoldUDP64 with these messages; without any, a heartbeat."""
        blocks = b"".join(struct.pack(">H", len(message)) + message for message in messages)
        header = session.ljust(10) + struct.pack(">QH", sequence, len(messages))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            out.sendto(header + blocks, ("127.0.0.1", self.feed_port))

    def limit_files(self, most):
        """Files can grow no further, as on a full disk; None: they can."""
        most = resource.RLIM_INFINITY if most is None else most
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


# A system event of ITCH: nothing but a time.
EVENT = b"S" + bytes(10) + b"O"

FAULTS = {}


def fault(*alerts):
    """Registers a fault with the alerts that it makes fire."""

    def register(plant_it):
        for alert in alerts:
            FAULTS[alert] = plant_it
        return plant_it

    return register


@fault("TapelinePlantDown")
def plant_is_killed(world):
    plant = Plant(world, "down")
    plant.kill(signal.SIGKILL)
    world.fires("TapelinePlantDown", plant)
    plant.start()
    world.clears("TapelinePlantDown", plant)


@fault("TapelineServiceDown", "TapelineFeedStale")
def exchange_is_silent(world):
    plant = Plant(world, "silent")
    world.fires("TapelineServiceDown", plant)
    # Nothing since the start, too.
    world.fires("TapelineFeedStale", plant)
    exchange = plant.exchange()
    world.clears("TapelineServiceDown", plant)
    world.clears("TapelineFeedStale", plant)
    exchange.kill()
    world.fires("TapelineFeedStale", plant)
    plant.exchange()
    world.clears("TapelineFeedStale", plant)

    above, below = hosts(world, "silent", rate="2k")
    above.kill(signal.SIGKILL)
    world.fires("TapelineFeedStale", below)
    above.start()
    above.exchange()
    world.clears("TapelineFeedStale", below)


@fault("TapelineFeedMissing", "TapelineFeedMalformed")
def messages_are_lost_and_broken(world):
    plant = Plant(world, "lossy")
    plant.send(1, EVENT)
    plant.send(10, EVENT)
    world.fires("TapelineFeedMissing", plant)
    plant.send(11, b"A too short")
    world.fires("TapelineFeedMalformed", plant)
    world.clears("TapelineFeedMissing", plant)
    world.clears("TapelineFeedMalformed", plant)


@fault("TapelineFeedSuspect")
def plant_starts_in_the_middle_of_a_session(world):
    plant = Plant(world, "late")
    plant.send(500, EVENT)
    world.fires("TapelineFeedSuspect", plant)
    plant.send(1, EVENT, session=b"NEXT")
    plant.send(2, EVENT, session=b"NEXT")
    world.clears("TapelineFeedSuspect", plant)


@fault("TapelineKernelDrops")
def plant_is_too_slow_for_its_feed(world):
    plant = Plant(world, "drops")
    plant.process.send_signal(signal.SIGSTOP)
    for _ in range(5_000):
        plant.send(1)
    plant.process.send_signal(signal.SIGCONT)
    # The kernel tells with the next datagram.
    plant.send(1)
    world.fires("TapelineKernelDrops", plant)
    world.clears("TapelineKernelDrops", plant)


@fault("TapelineItemsRefused")
def feed_has_more_symbols_than_items(world):
    plant = Plant(world, "items", plant="max_items = 10")
    exchange = plant.exchange(symbols="100")
    world.fires("TapelineItemsRefused", plant)
    exchange.kill()
    plant.kill()
    plant.text = plant.text.replace("max_items = 10", "max_items = 1000")
    plant.start()
    plant.exchange(symbols="100")
    world.clears("TapelineItemsRefused", plant)


SNAPSHOT = {"type": "snapshot", "product_id": "BTC-USD", "bids": [["1", "2"]], "asks": [["3", "4"]]}


def coinbase(port, *symbols):
    """The feed of a plant that follows a venue of this machine."""
    url = f"ws://127.0.0.1:{port}/"
    return f'[[feed]]\nname = "coinbase"\nprotocol = "coinbase"\nurl = "{url}"\nsymbols = {json.dumps(symbols)}\n'


@fault("TapelineBookApart")
def venue_does_not_know_a_symbol(world):
    with venue(SNAPSHOT) as port:
        plant = Plant(world, "venue", coinbase(port, "BTC-USD", "NO-SUCH"), feed=False)
        world.fires("TapelineBookApart", plant)
        apart = world.query(f'tapeline_venue_book_joined{{instance="{plant.web}"}} == 0')
        assert [one["metric"]["symbol"] for one in apart] == ["NO-SUCH"], apart
        plant.kill()
        plant.text = plant.text.replace(', "NO-SUCH"', "")
        plant.start()
        world.clears("TapelineBookApart", plant)
        until("the book", lambda: world.query(f'tapeline_venue_book_joined{{instance="{plant.web}"}} == 1'))


@fault("TapelineVenueSilent")
def venue_sends_nothing_more(world):
    with venue(SNAPSHOT) as port:
        plant = Plant(world, "quiet", coinbase(port, "BTC-USD"), feed=False)
        world.fires("TapelineVenueSilent", plant)
        plant.kill()
        plant.start()
        world.clears("TapelineVenueSilent", plant)


@fault("TapelineSourceAway")
def provider_is_away(world):
    port = free_port()
    text = f'[[service]]\nname = "RATES"\nid = 2\nproviders = ["adh1"]\n[[provider]]\nname = "adh1"\nservers = ["127.0.0.1:{port}"]\n'
    plant = Plant(world, "away", text)
    world.fires("TapelineSourceAway", plant)
    world.tool("omm", "serve", "--port", port, "--service", "RATES", "--service-id", 2)
    world.clears("TapelineSourceAway", plant)


@fault("TapelineItemsUnserved")
def publisher_goes(world):
    port = free_port()
    plant = Plant(world, "unserved", f'[[service]]\nname = "RATES"\nid = 2\n[publishers]\nport = {port}\n')
    publish = lambda: world.tool("omm", "publish", "--server", f"127.0.0.1:{port}", "--service", "RATES", "--service-id", 2, "EUR=", "GBP=")
    publisher = publish()
    until("items of the publisher", lambda: world.query(f'tapeline_source_items{{instance="{plant.web}"}} == 2'))
    publisher.kill()
    world.fires("TapelineItemsUnserved", plant)
    publish()
    world.clears("TapelineItemsUnserved", plant)


@fault("TapelineRingFull", "TapelineReaderEvicted")
def reader_stops(world):
    plant = Plant(world, "waits", plant='ring_size = "256KiB"\nstall_limit = "600s"')
    plant.exchange(rate="20k")
    reader = stopped_reader(world, plant)
    # While the plant still waits for the reader, not only afterwards.
    world.fires("TapelineRingFull", plant)
    reader.kill()
    world.clears("TapelineRingFull", plant)

    plant = Plant(world, "reader", plant='ring_size = "256KiB"')
    plant.exchange(rate="20k")
    reader = stopped_reader(world, plant)
    world.fires("TapelineRingFull", plant)
    world.fires("TapelineReaderEvicted", plant)
    reader.kill()
    world.clears("TapelineRingFull", plant)
    world.clears("TapelineReaderEvicted", plant)


def stopped_reader(world, plant):
    reader = world.tool("plant", "watch", "--ring", plant.name, "--duration", "600s")
    until("the reader", lambda: world.query(f'tapeline_ring_reader_lag_bytes{{instance="{plant.web}", pid="{reader.pid}"}}'))
    reader.send_signal(signal.SIGSTOP)
    return reader


@fault("TapelineRingNameRemoved")
def ring_loses_its_name(world):
    plant = Plant(world, "name")
    plant.exchange()
    pathlib.Path(f"/dev/shm/tapeline-{plant.name}").unlink()
    world.fires("TapelineRingNameRemoved", plant)
    plant.kill()
    plant.start()
    world.clears("TapelineRingNameRemoved", plant)


@fault("TapelineThreadSilent", "TapelineTicksMissed")
def thread_hangs(world):
    bridge = f'[bridge]\nplant = "OPS"\nport = 0\n[[bridge.line]]\naddress = "127.0.0.1:{free_port(socket.SOCK_DGRAM)}"\n'
    for thread, text, counter in (("hub", "", "tapeline_hub_ticks_total"), ("bridge", bridge, "tapeline_bridge_sequence")):
        plant = Plant(world, f"hangs-{thread}", text, plant='ring_size = "256KiB"')
        plant.exchange(rate="20k")
        until(f"ticks in the {thread}", lambda: world.query(f'{counter}{{instance="{plant.web}"}} > 0'))
        with stopped_thread(plant.process.pid, thread):
            world.fires("TapelineThreadSilent", plant)
        world.fires("TapelineTicksMissed", plant)
        world.clears("TapelineThreadSilent", plant)
        world.clears("TapelineTicksMissed", plant)


def hosts(world, name, rate="20k"):
    """A plant with a bridge and an exchange, and one below of it that keeps a journal."""
    server, line = free_port(), f"127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    journal = '[journal]\nfolder = "journal"\n'
    above = Plant(world, f"{name}-above", f'{journal}[bridge]\nplant = "OPS"\nport = {server}\n[[bridge.line]]\naddress = "{line}"\n')
    above.exchange(rate=rate)
    upstream = f'[[upstream]]\nplant = "OPS"\nserver = "127.0.0.1:{server}"\nstart = "epoch"\nstale_after = "1s"\nreceive_buffer = "64KiB"\n'
    below = Plant(world, f"{name}-below", f'{journal}{upstream}[[upstream.line]]\naddress = "{line}"\n', feed=False)
    until("ticks of the plant above", lambda: world.query(f'tapeline_upstream_sequence{{instance="{below.web}"}} > 100'))
    return above, below


@fault("TapelineUpstreamBehind")
def firewall_keeps_out_of_the_catch_up_server(world):
    _above, below = hosts(world, "behind")
    right, wrong = re.search(r'server = "127.0.0.1:\d+"', below.text)[0], f'server = "127.0.0.1:{free_port()}"'
    below.kill()
    below.text = below.text.replace(right, wrong)
    below.start()
    world.fires("TapelineUpstreamBehind", below)
    below.kill()
    below.text = below.text.replace(wrong, right)
    below.start()
    world.clears("TapelineUpstreamBehind", below)


@fault("TapelineUpstreamCaughtUp")
def lines_lose_too_much(world):
    above, below = hosts(world, "lossy-line", rate="50k")
    sent = f'tapeline_bridge_sequence{{instance="{above.web}"}}'
    below.process.send_signal(signal.SIGSTOP)
    # More than re-requests bring.
    last = float(world.query(sent)[0]["value"][1]) + 50_000
    until("ticks of the plant above", lambda: world.query(f"{sent} > {last}"))
    below.process.send_signal(signal.SIGCONT)
    world.fires("TapelineUpstreamCaughtUp", below)
    world.clears("TapelineUpstreamCaughtUp", below)


def pair(world, called):
    """Three witnesses, and two plants that stand in for each other; the first leads."""
    addresses = [f"127.0.0.1:{free_port(socket.SOCK_DGRAM)}" for _ in range(3)]
    witness = lambda at: world.tool("bridge", "witness", "--bind", addresses[at], "--file", world.folder / f"{called}-witness-{at}")
    witnesses = [witness(at) for at in range(3)]
    ports = free_port(), free_port()
    # A group of its own for each run: both plants listen to the line.
    line = f"239.255.{os.getpid() >> 8 & 255}.{os.getpid() & 255}:{free_port(socket.SOCK_DGRAM)}"
    plants = []
    for own, other in (ports, ports[::-1]):
        name = f"{called}-{len(plants)}"
        text = (
            f'[journal]\nfolder = "journal"\n[lease]\nname = "{name}"\nwitnesses = {json.dumps(addresses)}\n'
            f'[bridge]\nplant = "PAR"\nport = {own}\n[[bridge.line]]\naddress = "{line}"\n'
            f'[[upstream]]\nplant = "PAR"\nserver = "127.0.0.1:{other}"\nstart = "epoch"\n[[upstream.line]]\naddress = "{line}"\n'
        )
        plants.append(Plant(world, name, text))
        if len(plants) == 1:
            until("the first plant to lead", lambda: world.query(f'tapeline_lease_held{{instance="{plants[0].web}"}} == 1'))
            plants[0].exchange()
    return plants, witnesses, witness


@fault("TapelineLeaseChanged", "TapelineWitnessSilent")
def leader_is_killed_and_a_witness_too(world):
    (first, second), witnesses, witness = pair(world, "pair")
    first.kill(signal.SIGKILL)
    world.fires("TapelineLeaseChanged", second)
    witnesses[0].kill()
    world.fires("TapelineWitnessSilent", second)
    witness(0)
    world.clears("TapelineWitnessSilent", second)
    world.clears("TapelineLeaseChanged", second)


@fault("TapelineJournalStopped")
def disk_is_full(world):
    plant = Plant(world, "disk", '[journal]\nfolder = "journal"\non_failure = "continue"\n')
    plant.exchange()
    until("ticks in the journal", lambda: world.query(f'tapeline_journal_sequence{{instance="{plant.web}"}} > 0'))
    plant.limit_files(4096)
    world.fires("TapelineJournalStopped", plant)
    plant.limit_files(None)
    world.clears("TapelineJournalStopped", plant)


@fault("TapelineKdbEnded")
def log_of_kdb_cannot_be_written(world):
    table = '[[kdb.table]]\nname = "quote"\nrows = "quotes"\ncolumns = ["time timespan", "sym symbol", "bid float BID"]\n'
    plant = Plant(world, "kdb", f"[kdb]\nport = 0\n{table}")
    plant.exchange()
    until("ticks", lambda: world.query(f'tapeline_ticks_total{{instance="{plant.web}"}} > 100'))
    plant.limit_files(4096)
    world.fires("TapelineKdbEnded", plant)
    plant.kill()
    plant.start()
    world.clears("TapelineKdbEnded", plant)


@fault("TapelineClientsBehind", "TapelineClientsCut")
def client_stops(world):
    plant = Plant(world, "client", hub='slow = "cut"\nslow_bytes = "512MiB"\nslow_messages = 100000000\nslow_age = "15s"')
    plant.exchange(rate="50k", symbols="50")
    until("items", lambda: world.query(f'tapeline_items{{instance="{plant.web}"}} >= 50'))
    client = everything(world, plant)
    until("the client", lambda: world.query(f'tapeline_updates_total{{instance="{plant.web}"}} > 1000'))
    client.send_signal(signal.SIGSTOP)
    world.fires("TapelineClientsBehind", plant)
    world.fires("TapelineClientsCut", plant)
    client.kill()
    world.clears("TapelineClientsBehind", plant)
    world.clears("TapelineClientsCut", plant)


def everything(world, plant):
    """A client that has all items of the plant open."""
    with urllib.request.urlopen(f"http://{plant.web}/stat.json", timeout=10) as answer:
        answer.read()
    ticks = world.run("plant", "watch", "--ring", plant.name, "--duration", "2s", "--format", "json").stdout.decode()
    names = {json.loads(line).get("item") for line in ticks.splitlines() if line.startswith("{")}
    names = sorted(name for name in names if name)
    assert names, "no items in the plant's ring"
    (plant.folder / "items.txt").write_text("\n".join(names) + "\n")
    words = ("--item-file", plant.folder / "items.txt", "--sys-recv-buf-size", 4096)
    return world.tool("omm", "watch", "--server", plant.hub, "--service", "TAPELINE", "--quiet", *words)


@fault("TapelineCacheNearlyFull")
def cache_is_small(world):
    plant = Plant(world, "cache", hub='cache_size = "64KiB"')
    exchange = plant.exchange(symbols="2000", rate="20k")
    world.fires("TapelineCacheNearlyFull", plant)
    exchange.kill()
    plant.kill()
    plant.text = plant.text.replace('cache_size = "64KiB"', "")
    plant.start()
    plant.exchange(symbols="2000", rate="20k")
    world.clears("TapelineCacheNearlyFull", plant)


@fault("TapelineCertificateExpires")
def certificate_ends(world):
    def renew(days):
        words = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", days, "-subj", "/CN=localhost")
        files = ("-keyout", world.folder / "hub.key", "-out", world.folder / "hub.pem")
        subprocess.run(["openssl", "req", *map(str, words + files)], check=True, capture_output=True)

    renew(3)
    files = f'cert = "{world.folder}/hub.pem"\nkey = "{world.folder}/hub.key"\n'
    text = f'[[service]]\nname = "RATES"\nid = 2\n[publishers]\nport = {free_port()}\n{files}'
    text += f'[bridge]\nplant = "OPS"\nport = {free_port()}\n{files}[[bridge.line]]\naddress = "127.0.0.1:{free_port(socket.SOCK_DGRAM)}"\n'
    plant = Plant(world, "certificate", text, hub=files)
    world.fires("TapelineCertificateExpires", plant)
    servers = lambda: {one["labels"]["server"] for one in world.firing("TapelineCertificateExpires", plant.web)}
    until("the alert of each server", lambda: servers() == {"hub", "publishers", "bridge"})
    renew(300)
    plant.process.send_signal(signal.SIGHUP)
    world.clears("TapelineCertificateExpires", plant)


@fault("TapelineLoginsRefused")
def someone_guesses_passwords(world):
    users = world.folder / "users.txt"
    made = world.run("plant", "passwd", "--users", users, "alice", input=b"right horse\n")
    assert made.returncode == 0, made.stderr.decode()
    plant = Plant(world, "logins", hub=f'[hub.access]\nlogin = "password"\nusers = "{users}"\n')
    (plant.folder / "wrong").write_text("wrong horse\n")
    words = ("--user", "alice", "--password-file", plant.folder / "wrong", "--attempts", 1, "--for", "5s")
    guess = lambda _: world.run("omm", "watch", "--server", plant.hub, "--service", "TAPELINE", "--quiet", *words, "AAPL")

    def guesses():
        # All at once: one after another they are too few in the rule's window where the machine is slow.
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(guess, range(8)))
        return world.firing("TapelineLoginsRefused", plant.web)

    until("TapelineLoginsRefused to fire", guesses)
    world.fires("TapelineLoginsRefused", plant)
    world.clears("TapelineLoginsRefused", plant)


@fault("TapelineRequestsRefused")
def client_wants_what_is_not_there(world):
    plant = Plant(world, "requests", hub='unknown = "closed"')
    plant.exchange()
    until("ticks", lambda: world.query(f'tapeline_ticks_total{{instance="{plant.web}"}} > 0'))
    (plant.folder / "items.txt").write_text("".join(f"NONE{number}\n" for number in range(200)))
    words = ("--item-file", plant.folder / "items.txt", "--until-closed", "--for", "10s")
    world.run("omm", "watch", "--server", plant.hub, "--service", "TAPELINE", "--quiet", *words)
    world.fires("TapelineRequestsRefused", plant)
    world.clears("TapelineRequestsRefused", plant)


@fault("TapelineLatencyHigh")
def plant_loses_its_core(world):
    plant = Plant(world, "latency")
    plant.exchange(rate="5k")
    until("ticks", lambda: world.query(f'tapeline_ticks_total{{instance="{plant.web}"}} > 100'))
    everything(world, plant)
    is_over = threading.Event()

    def disturb():
        while not is_over.is_set():
            plant.process.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            plant.process.send_signal(signal.SIGCONT)
            time.sleep(0.2)

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    try:
        world.fires("TapelineLatencyHigh", plant)
    finally:
        is_over.set()
        disturbing.join()
    world.clears("TapelineLatencyHigh", plant)


def dashboard(world):
    """Every query of the dashboard gives data of a plant that has every part, or of one on another host."""
    with venue(SNAPSHOT) as venue_port:
        asked_by_dashboard(world, venue_port)


def asked_by_dashboard(world, venue_port):
    port, provider = free_port(), free_port()
    text = (
        f'[[service]]\nname = "RATES"\nid = 2\nproviders = ["adh1"]\n[[provider]]\nname = "adh1"\nservers = ["127.0.0.1:{provider}"]\n'
        f'[[service]]\nname = "FX"\nid = 3\n[publishers]\nport = {port}\n[journal]\nfolder = "journal"\n'
        '[kdb]\nport = 0\n[[kdb.table]]\nname = "quote"\nrows = "quotes"\ncolumns = ["time timespan", "sym symbol", "bid float BID"]\n'
        f"{coinbase(venue_port, 'BTC-USD')}"
    )
    plant = Plant(world, "whole", text, hub="[hub.zeromq]\nport = 0\n")
    plant.exchange(rate="5k")
    world.tool("omm", "serve", "--port", provider, "--service", "RATES", "--service-id", 2)
    world.tool("omm", "publish", "--server", f"127.0.0.1:{port}", "--service", "FX", "--service-id", 3, "EUR=")
    until("ticks", lambda: world.query(f'tapeline_ticks_total{{instance="{plant.web}"}} > 100'))
    everything(world, plant)
    page = urllib.request.urlopen(f"http://{plant.web}/metrics").read()
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True)
    assert checked.returncode == 0, f"promtool check metrics: {checked.stderr.decode()}"
    (leader, standby), *_ = pair(world, "shown")
    instances = "|".join(re.escape(one.web) for one in (plant, leader, standby)).replace("\\", "\\\\")
    board = json.loads((ROOT / "ops/grafana/tapeline.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    for query in queries:
        query = query.replace("$instance", instances).replace("$__rate_interval", WINDOW)
        assert "$" not in query, query
        until(f"data for {query}", lambda: world.query(query))
    print(f"  {len(queries)} queries of the dashboard give data", flush=True)


# Reads a push with OpenTelemetry's own messages, strictly, and prints what each metric is: its kind, its points.
READS = """
import sys
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
request = json_format.Parse(sys.stdin.read(), ExportMetricsServiceRequest())
for metric in request.resource_metrics[0].scope_metrics[0].metrics:
    kind = metric.WhichOneof("data")
    for point in getattr(metric, kind).data_points:
        assert 0 < point.start_time_unix_nano <= point.time_unix_nano, point
        labels = {one.key: one.value.string_value for one in point.attributes}
        has = kind == "summary" or point.WhichOneof("value")
        print(metric.name, kind, len(labels), has)
"""


def built_collector():
    """A collector of OpenTelemetry, built from its modules; None where no Go is new enough."""
    source = ROOT / "tests/ops/collector"
    wanted = re.search(r"^go (\d+)\.(\d+)", (source / "go.mod").read_text(), re.MULTILINE).groups()
    # No other toolchain is brought for it.
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    version = ""
    with contextlib.suppress(FileNotFoundError):
        version = subprocess.run(["go", "env", "GOVERSION"], env=environment, capture_output=True, text=True).stdout
    found = re.match(r"go(\d+)\.(\d+)", version)
    if not found or tuple(map(int, found.groups())) < tuple(map(int, wanted)):
        print(f"ops: no real collector of OpenTelemetry, a small one of Python's in its place: Go {'.'.join(wanted)} or newer builds it")
        return None
    binary = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "ops/collector"
    subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary], cwd=source, env=environment, check=True)
    return binary


def guarded_collector(world, binary, to):
    """Starts a collector that takes metrics over TLS from who has its key, and passes them on; the table of a plant that pushes to it."""
    folder, port = world.folder / "collector", free_port()
    folder.mkdir()
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    for files, words in (("ca", ("-subj", "/CN=ops")), ("server", ("-subj", "/CN=localhost", "-CA", "ca.pem", "-CAkey", "ca.key"))):
        more = ("-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE") if files == "server" else ()
        made = ("openssl", "req", "-x509", *key, *words, *more, "-keyout", f"{files}.key", "-out", f"{files}.pem")
        subprocess.run(made, cwd=folder, check=True, capture_output=True)
    (folder / "key").write_text("right-key")
    settings = {
        "extensions": {"bearertokenauth": {"filename": f"{folder}/key"}},
        "receivers": {
            "otlp": {
                "protocols": {
                    "http": {
                        "endpoint": f"127.0.0.1:{port}",
                        "tls": {"cert_file": f"{folder}/server.pem", "key_file": f"{folder}/server.key"},
                        "auth": {"authenticator": "bearertokenauth"},
                    }
                }
            }
        },
        "exporters": {"otlp_http": {"metrics_endpoint": to, "encoding": "json", "compression": "none", "sending_queue": {"enabled": False}}},
        "service": {"extensions": ["bearertokenauth"], "pipelines": {"metrics": {"receivers": ["otlp"], "exporters": ["otlp_http"]}}},
    }
    # JSON is YAML.
    (folder / "collector.yaml").write_text(json.dumps(settings))
    world.start(binary, "--config", folder / "collector.yaml", stderr=(folder / "log").open("w"))
    (folder / "headers").write_text("Authorization: Bearer wrong-key\n")
    address = f'endpoint = "https://localhost:{port}/v1/metrics"\nca = "{folder}/ca.pem"\nheaders_file = "{folder}/headers"'
    return folder / "headers", address


def collector(world):
    """A plant pushes to a collector what its page shows; OpenTelemetry's own messages can read what the collector passes on."""
    binary = world.collector
    python = world.folder / "python"
    subprocess.run([sys.executable, "-m", "venv", python], check=True)
    pip = [python / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "opentelemetry-proto==1.45.2"]
    subprocess.run(pip, check=True)
    pushes = queue.Queue()

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            pushes.put((self.path, self.headers["Content-Type"], body))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}/v1/metrics"
        headers, address = guarded_collector(world, binary, endpoint) if binary else (None, f'endpoint = "{endpoint}"')
        plant = Plant(world, "otlp", f'[journal]\nfolder = "journal"\n[otlp]\n{address}\nevery = "1s"\n')
        plant.exchange()
        if headers:
            log = lambda: (plant.folder / "plant.log").read_text()
            until("a refused key in the log", lambda: "it answers with status 401" in log())
            headers.write_text("Authorization: Bearer right-key\n")
            until("an accepted key in the log", lambda: "takes metrics again" in log())
            assert "-key" not in log(), log()
        until("ticks", lambda: world.query(f'tapeline_ticks_total{{instance="{plant.web}"}} > 100'))
        # What was pushed before is older.
        while not pushes.empty():
            pushes.get()
        pushes.get(timeout=PATIENCE_S)
        path, kind, body = pushes.get(timeout=PATIENCE_S)
        assert (path, kind) == ("/v1/metrics", "application/json"), (path, kind)
        read = subprocess.run([python / "bin/python", "-c", READS], input=body, stdout=subprocess.PIPE, check=True)
        pushed = [line.split() for line in read.stdout.decode().splitlines()]
        with urllib.request.urlopen(f"http://{plant.web}/metrics", timeout=10) as answer:
            page = answer.read().decode()
        kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.MULTILINE))
        shown = {re.match(r"\w+", line)[0] for line in page.splitlines() if line[0] != "#" and not line.endswith("NaN")}
        shown = {re.sub("^(tapeline_latency_seconds)_(sum|count)$", r"\1", name) for name in shown}
        assert {name for name, *_ in pushed} == shown, {name for name, *_ in pushed} ^ shown
        for name, kind, *_ in pushed:
            assert {"counter": "sum"}.get(kinds[name], kinds[name]) == kind, (name, kind)
        assert ["tapeline_ticks_total", "sum", "0", "as_int"] in pushed, pushed
        server.shutdown()
        through = "a real collector, over TLS and with its key" if binary else "a collector"
        print(f"  {len(shown)} metrics in {len(pushed)} points reach {through}", flush=True)


def documented(alerts):
    """The rules, the runbook and the faults name the same alerts."""
    runbook = (ROOT / "docs/runbook.md").read_text()
    headings = re.findall(r"^## (Tapeline\w+)$", runbook, re.MULTILINE)
    assert headings == alerts, f"docs/runbook.md has {headings}, the rules have {alerts}"
    assert sorted(FAULTS) == sorted(alerts), f"no fault here for {set(alerts) ^ set(FAULTS)}"


def main():
    tapeline, *wanted = sys.argv[1:]
    for command in ("check rules ops/prometheus/tapeline.rules.yml", "check config ops/prometheus/prometheus.yml"):
        subprocess.run(["promtool", *command.split()], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    alerts = re.findall(r"- alert: (\w+)", (ROOT / "ops/prometheus/tapeline.rules.yml").read_text())
    documented(alerts)
    others = {"dashboard": dashboard, "collector": collector}
    unknown = set(wanted) - set(alerts) - set(others)
    if unknown:
        sys.exit(f"ops: no alert {', '.join(unknown)}; there are {', '.join(alerts)}, and {', '.join(others)}")
    # One fault may make several alerts fire.
    checks = {FAULTS[alert]: None for alert in alerts if not wanted or alert in wanted}
    checks |= {check: None for name, check in others.items() if not wanted or name in wanted}
    world = World(tapeline)
    failed = []
    try:
        # Before the plants start, which the compiler would disturb.
        world.collector = built_collector() if collector in checks else None
        world.prometheus()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            running = {pool.submit(check, world): check.__name__ for check in checks}
            for done in concurrent.futures.as_completed(running):
                if done.exception():
                    failed.append(f"{running[done]}: {done.exception() or repr(done.exception())}")
                    print(f"FAILED {failed[-1]}", flush=True)
    finally:
        world.end()
    if failed:
        sys.exit(f"ops: {len(failed)} of {len(checks)} checks failed")
    print(f"ops: {len(checks)} checks passed")


if __name__ == "__main__":
    main()
