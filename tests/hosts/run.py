#!/usr/bin/env python3
"""Plants on hosts of their own, for minutes: each packet may be lost, a plant is killed and another joins late in each minute.

    tests/hosts/run.py TAPELINE [--minutes 10] [--rate 100k] [--loss 1] [--doc FILE]

As root. A host is a network namespace with one card, at a switch in a namespace of its own. `above` has the feed and numbers the ticks; `one` and
`two` are below it, each with a journal and two lines, and lose this percentage of all packets that arrive, as `above` does. In each minute one of the
three is killed with SIGKILL and started again at once, and `late` starts with nothing, follows, and ends. At the end of the minute each tick
that all of them have by then must be the same in all journals, without a hole.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 120
LINES = ("239.255.14.1:14041", "239.255.14.2:14042")
FEED = "127.0.0.1:26477"
KILLED = ("two", "one", "above")


def until(what, condition):
    """The first true value of `condition`, or an error that names `what`."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE_S} s in vain for {what}")


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Network:
    """A switch, and the cards of hosts at it."""

    def __init__(self, loss):
        self.loss = loss
        self.spaces = []
        self.switch = self.space("switch")
        # Multicast goes to every host, as with a switch that does not look into IGMP.
        ip("-n", self.switch, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        ip("-n", self.switch, "link", "set", "br0", "up")

    def space(self, name):
        name = f"tapeline-{os.getpid()}-{name}"
        ip("netns", "add", name)
        self.spaces.append(name)
        return name

    def host(self, name, address):
        space = self.space(name)
        ip("-n", self.switch, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", space)
        ip("-n", self.switch, "link", "set", name, "master", "br0", "up")
        ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
        for card in ("lo", "eth0"):
            ip("-n", space, "link", "set", card, "up")
        if self.loss:
            lose = ["-m", "statistic", "--mode", "random", "--probability", str(self.loss / 100), "-j", "DROP"]
            subprocess.run(["ip", "netns", "exec", space, "iptables", "-A", "INPUT", "-i", "eth0", *lose], check=True)
        return space

    def end(self):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], check=False)


class Host:
    """A plant that can be killed and started again, and readers beside it."""

    def __init__(self, run, name, number, tables):
        self.run, self.name = run, name
        self.address = f"10.77.0.{number}"
        self.space = run.network.host(name, self.address)
        self.ring = f"hosts-{os.getpid()}-{name}"
        self.journal = run.folder / name
        self.config = run.folder / f"{name}.toml"
        self.log = run.folder / f"{name}.log"
        lines = "\n".join(f'[[{tables[1]}.line]]\naddress = "{line}"\ninterface = "{self.address}"' for line in LINES)
        self.config.write_text(
            f'[plant]\nname = "HOSTS"\nring = "{self.ring}"\nring_size = "32MiB"\npublish = "every-message"\n[journal]\nfolder = "{self.journal}"\n'
            f"{tables[0].format(address=self.address)}\n{lines}\n"
        )
        self.plant = None
        self.counted = {}

    def start(self, *words, **options):
        command = ["ip", "netns", "exec", self.space, self.run.tapeline, *map(str, words)]
        return self.run.start(command, **options)

    def begin(self):
        with self.log.open("a") as log:
            self.plant = self.start("plant", "--config", self.config, "--format", "json", stdout=subprocess.PIPE, stderr=log)
        ready = self.plant.stdout.readline()
        assert "ready" in ready, f"{self.name} does not start: {self.log.read_text()[-2000:]}"

    def kill(self):
        self.plant.kill()
        self.plant.wait()
        self.counted = {}

    def finish(self):
        self.plant.send_signal(signal.SIGTERM)
        report = self.plant.stdout.read()
        status = self.plant.wait(PATIENCE_S)
        assert status in (0, 3), f"{self.name} ended with status {status}: {self.log.read_text()[-2000:]}"
        return json.loads(report.splitlines()[-1])

    def measure(self, *words):
        """A reader of the plant's ring from now on; ends with the ring or with the words."""
        words = ("plant", "measure", "--ring", self.ring, "--wait-for-ring", "60s", "--format", "json", *words)
        return self.start(*words, stdout=subprocess.PIPE)

    def first_tick(self):
        """How long until a reader of the ring has a tick, in s."""
        began = time.monotonic()
        until(f"a tick of {self.name}", lambda: self.report(self.measure("--ticks", "1"))["received"])
        return time.monotonic() - began

    @staticmethod
    def report(reader):
        said = reader.communicate(timeout=PATIENCE_S)[0]
        return json.loads(said) if said else {"received": 0, "lost": 0, "hops": []}

    def stat(self):
        done = subprocess.run([self.run.tapeline, "stat", self.ring, "--format", "json"], capture_output=True, timeout=PATIENCE_S)
        return json.loads(done.stdout) if done.stdout else {}

    def kept(self):
        """The last sequence in the journal, 0 for none."""
        return self.stat().get("journal", {}).get("kept", 0)

    def counts(self):
        """What came by other ways than the lines since the last call, or since the plant was started."""
        now = {of: self.stat()["upstream"][of] for of in ("recovered", "left_lines")}
        more = {of: count - self.counted.get(of, 0) for of, count in now.items()}
        self.counted = now
        return more

    def ticks(self, first, last):
        """Count and digest of these ticks in the journal."""
        words = ["journal", "verify", self.journal, "--from-sequence", first, "--to-sequence", last, "--digest", "--format", "json"]
        done = subprocess.run([self.run.tapeline, *map(str, words)], capture_output=True, timeout=PATIENCE_S)
        assert done.returncode == 0, f"journal of {self.name}: {done.stderr.decode()}"
        found = json.loads(done.stdout)
        return {"first": found["first"]["sequence"], "last": found["last"]["sequence"], **{of: found[of] for of in ("ticks", "missing", "digest")}}


class Run:
    def __init__(self, arguments):
        self.tapeline = str(arguments.tapeline.resolve())
        self.rate, self.minutes, self.loss = arguments.rate, arguments.minutes, arguments.loss
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tapeline-hosts-"))
        self.children, self.rows, self.compared = [], [], 0
        self.network = Network(self.loss)
        feed = f'[[feed]]\nname = "itch"\nprotocol = "itch50-moldudp64"\n[[feed.line]]\naddress = "{FEED}"\n'
        bridge = '[bridge]\nplant = "HST"\nbind = "{address}"\nport = 14040'
        self.above = Host(self, "above", 1, (feed + bridge, "bridge"))
        upstream = '[hub]\nport = 14002\n[[upstream]]\nplant = "HST"\nserver = "10.77.0.1:14040"\n'
        below = [Host(self, name, number, (upstream + 'start = "epoch"', "upstream")) for number, name in ((2, "one"), (3, "two"))]
        self.one, self.two = below
        self.late = Host(self, "late", 4, (upstream, "upstream"))

    def start(self, command, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "text": True} | options
        child = subprocess.Popen(command, **options)
        self.children.append(child)
        return child

    def end(self):
        for child in self.children:
            child.kill()
            child.wait()
        self.network.end()
        for left in pathlib.Path("/dev/shm").glob(f"tapeline*hosts-{os.getpid()}-*"):
            left.unlink(missing_ok=True)

    def compare(self, hosts, first, last):
        """Each of these hosts' journals must have these ticks, alike."""
        found = {host.name: host.ticks(first, last) for host in hosts}
        kept = found["above"]
        assert all(other == kept for other in found.values()), f"ticks {first} to {last}: {json.dumps(found, indent=1)}"
        assert (kept["first"], kept["last"], kept["ticks"], kept["missing"]) == (first, last, last - first + 1, 0), kept
        return kept

    def joins_late(self, seconds):
        """A plant without a journal follows for so long; returns the time to its first tick, and its ticks, which must be those above."""
        shutil.rmtree(self.late.journal, ignore_errors=True)
        began = time.monotonic()
        self.late.begin()
        self.late.first_tick()
        took = time.monotonic() - began
        time.sleep(seconds)
        self.late.finish()
        words = ["journal", "verify", self.late.journal, "--format", "json"]
        kept = json.loads(subprocess.run([self.tapeline, *map(str, words)], capture_output=True, check=True).stdout)
        return took, self.compare((self.above, self.late), *(kept[end]["sequence"] for end in ("first", "last")))["ticks"]

    def minute(self, number, hosts):
        ends = time.monotonic() + 60
        readers = {host: host.measure("--duration", "45s") for host in hosts if host is not self.above}
        time.sleep(5)
        victim = next(host for host in hosts if host.name == KILLED[number % len(KILLED)])
        victim.kill()
        if victim is self.above:
            # The plants below begin again with it, and count anew.
            self.one.counted = self.two.counted = {}
        began = time.monotonic()
        victim.begin()
        # While the plant above is away its clients wait for ticks at a plant below.
        (self.one if victim is self.above else victim).first_tick()
        away = time.monotonic() - began
        time.sleep(5)
        joined, followed = self.joins_late(20)
        measured = {host.name: host.report(reader) for host, reader in readers.items()}
        last = min(until(f"the journal of {host.name}", host.kept) for host in hosts)
        kept = self.compare(hosts, self.compared + 1, last)
        self.compared = last
        again = {host.name: host.counts() for host in readers}
        row = {"minute": number + 1, "ticks": kept["ticks"], "last": last, "digest": kept["digest"], "killed": victim.name}
        self.rows.append(row | {"away_s": away, "joined_s": joined, "followed": followed, "again": again, "measured": measured})
        lost = sum(report["lost"] for report in measured.values())
        assert lost == 0, f"minute {number + 1}: a reader of a ring below lost {lost} ticks"
        print(f"hosts: minute {number + 1} of {self.minutes}: {kept['ticks']:,} ticks alike in {len(hosts)} journals; {victim.name} was killed,"
              f" ticks again after {away:.1f} s; late had its first after {joined:.1f} s", flush=True)
        time.sleep(max(0, ends - time.monotonic()))

    def all(self):
        hosts = (self.above, self.one, self.two)
        for host in hosts:
            host.begin()
        seconds = 60 * self.minutes + PATIENCE_S
        words = ("feed", "simulate", "--to", FEED, "--rate", self.rate, "--duration", f"{seconds}s", "--live-orders", "15000")
        exchange = self.above.start(*words)
        for number in range(self.minutes):
            self.minute(number, hosts)
            assert exchange.poll() is None, "the exchange has ended"
        exchange.kill()
        exchange.wait()
        # The plants below have it all once the plant above has nothing more to send.
        until("the same last tick everywhere", lambda: len({host.kept() for host in hosts}) == 1)
        for host in (self.one, self.two, self.above):
            host.finish()
        last = json.loads(subprocess.run([self.tapeline, "journal", "verify", str(self.above.journal), "--format", "json"], capture_output=True, check=True).stdout)
        return self.compare(hosts, 1, last["last"]["sequence"])


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} cores, Linux {os.uname().release}"


def latency(report, rank):
    hops = {hop["hop"]: hop["percentiles"] for hop in report["hops"]}
    ns = hops.get("sequenced-to-received", {}).get("latency_ns", {}).get(rank)
    return "–" if ns is None else f"{ns / 1e6:.2f}"


def page(run, whole):
    """The report, in Markdown."""
    rows = []
    for row in run.rows:
        below = [
            f"{latency(row['measured'][name], 'p50')} / {latency(row['measured'][name], 'p99')} | {row['again'][name]['recovered']:,} / {row['again'][name]['left_lines']}"
            for name in ("one", "two")
        ]
        rows.append(
            f"| {row['minute']} | {row['ticks']:,} | {row['killed']} | {row['away_s']:.1f} | {row['joined_s']:.1f} | {row['followed']:,} | {' | '.join(below)} |"
        )
    return PAGE.format(
        minutes=run.minutes, rate=run.rate, loss=f"{run.loss:g}", machine=machine(), rows="\n".join(rows), seconds=60 * run.minutes,
        count=f"{whole['ticks']:,}", per_s=f"{whole['ticks'] / 60 / run.minutes:,.0f}", digest=whole["digest"],
    )


PAGE = """# Hosts for {minutes} minutes

Written by `make hosts DOC=1 MINUTES={minutes} RATE={rate} LOSS={loss}`: a feed of {rate} messages/s, a plant above and two below, each on a host of its own, which is a
network namespace with one card at a switch. {loss} % of the packets that arrive at a card are lost, of UDP and TCP alike. In each minute one of the plants
is killed with SIGKILL and started again at once, and a plant without a journal joins, follows for 20 s, and ends. All share one machine:
{machine}.

In the end the journals of all three had ticks 1 to {count} ({per_s}/s), none missing, with one SHA-256 digest:
`{digest}`.
Each minute's ticks were compared as well, and those of the plant that joined late. No reader of a ring below lost a tick.

* *again after*: from the kill until a reader of the killed plant's ring has a tick; with `above` killed, a reader at `one`, whose ring begins again.
* *late*: from the start of the plant that joins until a reader of its ring has a tick, and how many ticks it followed.
* *ms*: median and p99 from the tick being numbered above until a reader of the ring below has it, corrected by the measured difference of the
  clocks, for 45 s of the minute or until that ring ended. The kill is in it.
* *again*: ticks that came on re-request / times that more was missing than the lines bring again, so that the journal above was asked; of a
  plant that began again in that minute, since then.

| minute | ticks | killed | again after, s | late, s | late, ticks | one, ms | one, again | two, ms | two, again |
|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|
{rows}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tapeline", type=pathlib.Path, help="the binary")
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--rate", default="50k", help="messages a second of the feed")
    parser.add_argument("--loss", type=float, default=1, help="percentage of packets that each card loses")
    parser.add_argument("--doc", type=pathlib.Path, help="write the report there, in Markdown")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("hosts: FAILED: only root can make network namespaces")
    if not os.access(arguments.tapeline, os.X_OK):
        sys.exit(f"hosts: FAILED: there is no program {arguments.tapeline}: make hosts builds it")
    run = Run(arguments)
    try:
        whole = run.all()
    except AssertionError as error:
        sys.exit(f"hosts: FAILED: {error}; configurations, logs and journals are in {run.folder}")
    finally:
        run.end()
    text = page(run, whole)
    if arguments.doc:
        arguments.doc.write_text(text)
    print(text)
    shutil.rmtree(run.folder)
    print(f"hosts: PASS: {whole['ticks']:,} ticks, alike on all hosts, none missing")


if __name__ == "__main__":
    main()
