//! The rules between options, as in the public tools. An error names both options and their values.

use tapeline_console::failure::Hinted;

use super::{ConsumerArgs, ItemArgs, NiProviderArgs, ProviderArgs, PublishingArgs, RunArgs, StampRate};

/// Maximum of `--delay-steady-state-calc`, in milliseconds.
const LONGEST_DELAY_MS: u64 = 30_000;

impl ConsumerArgs {
    /// Refuses options that break a rule.
    pub(in super::super) fn check(&self) -> Result<(), Hinted> {
        check_servers("--server", &self.server.server)?;
        check_servers("--standby", &self.standby)?;
        let ticks = self.run.pace.tick_rate;
        if self.request_rate < ticks {
            return Err(below_ticks("--request-rate", self.request_rate, ticks));
        }
        let (posts, generics) = (self.posting_latency_rate, self.generic_msg_latency_rate);
        for (option, rate, stamped_option, stamped) in [
            ("--posting-rate", self.posting_rate, "--posting-latency-rate", posts),
            ("--generic-msg-rate", self.generic_msg_rate, "--generic-msg-latency-rate", generics),
        ] {
            check_rates(option, rate, stamped_option, StampRate::PerSecond(stamped), ticks)?;
            if rate > 0 && self.snapshot {
                let what = format!("{option} is {rate}, and --snapshot closes every item with its image");
                return Err(Hinted::of_options(what, "leave one of them out"));
            }
        }
        check_common(&self.items, self.run.threads())?;
        self.run.check()?;
        if !self.run.api_threads().is_empty() && self.busy_read {
            let what = "--busy-read is of user dispatch, and --api-dispatch or --api-threads is given";
            let hint = "leave one of them out: two threads that never sleep hold each other up";
            return Err(Hinted::of_options(what, hint));
        }
        let (delay, time) = (self.delay_steady_state_calc, self.steady_state_time);
        if delay > LONGEST_DELAY_MS {
            let what =
                format!("--delay-steady-state-calc is {delay} ms; expected {LONGEST_DELAY_MS} at most");
            return Err(Hinted::of_options(what, ""));
        }
        if delay > time.saturating_mul(1_000) {
            let what = format!(
                "--delay-steady-state-calc is {delay} ms, and --steady-state-time {time} s: nothing would count"
            );
            return Err(Hinted::of_options(what, "make the delay shorter than the time"));
        }
        Ok(())
    }
}

impl ProviderArgs {
    /// Refuses options that break a rule.
    pub(in super::super) fn check(&self) -> Result<(), Hinted> {
        let (rate, stamped) = (self.generic_msg_rate, self.generic_msg_latency_rate);
        let ticks = self.run.pace.tick_rate;
        self.publishing.check(ticks)?;
        self.run.check()?;
        check_rates("--generic-msg-rate", rate, "--generic-msg-latency-rate", stamped, ticks)?;
        check_pre_enc(self.publishing.pre_enc, rate, "--generic-msg-latency-rate", stamped)
    }
}

impl NiProviderArgs {
    /// Refuses options that break a rule.
    pub(in super::super) fn check(&self) -> Result<(), Hinted> {
        check_servers("--server", &self.server.server)?;
        self.publishing.check(self.run.pace.tick_rate)?;
        self.run.check()?;
        check_common(&self.items, self.run.threads())
    }
}

impl RunArgs {
    fn check(&self) -> Result<(), Hinted> {
        let (api_threads, threads) = (self.api_threads().len(), self.threads());
        if api_threads > 0 && api_threads != threads {
            let what = format!("--api-threads names {api_threads}, and --threads {threads}");
            let hint = "there is one of these beside each of those: name equally many";
            return Err(Hinted::of_options(what, hint));
        }
        Ok(())
    }
}

impl PublishingArgs {
    fn check(&self, ticks: u64) -> Result<(), Hinted> {
        let stamped = self.stamped_updates();
        check_rates("--update-rate", self.update_rate, "--latency-update-rate", stamped, ticks)?;
        if let (Some(bytes), 1) = (self.pack_buffer_size, self.max_pack_count) {
            let what = format!("--pack-buffer-size is {bytes}, and --max-pack-count 1: nothing is packed");
            return Err(Hinted::of_options(what, "raise --max-pack-count, or leave --pack-buffer-size out"));
        }
        check_pre_enc(self.pre_enc, self.update_rate, "--latency-update-rate", stamped)
    }
}

/// Checks that servers are each a host and a port: an invalid address would be retried for ever.
pub(super) fn check_servers<'a>(
    option: &str,
    servers: impl IntoIterator<Item = &'a String>,
) -> Result<(), Hinted> {
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    servers.into_iter().try_for_each(|server| match server.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && is_port(port) => Ok(()),
        Some((_, port)) if !is_port(port) => {
            let what = format!("{option} is '{server}', and '{port}' is no port; expected 1 to 65535");
            Err(Hinted::of_options(what, "HOST:PORT is expected, such as localhost:14002"))
        }
        _ => {
            let what = format!("{option} is '{server}'; expected HOST:PORT, such as localhost:14002");
            Err(Hinted::of_options(what, ""))
        }
    })
}

/// A rate is 0 or at least the tick rate; the rate of messages with a time exceeds neither of the two.
fn check_rates(
    option: &str,
    rate: u64,
    stamped_option: &str,
    stamped: StampRate,
    ticks: u64,
) -> Result<(), Hinted> {
    if rate > 0 && rate < ticks {
        return Err(below_ticks(option, rate, ticks));
    }
    // `all` is valid for any rate, also 0.
    let StampRate::PerSecond(stamped) = stamped else { return Ok(()) };
    if stamped > rate {
        let what = format!("{stamped_option} is {stamped}, more than {option}, which is {rate}");
        return Err(Hinted::of_options(what, format!("make {stamped_option} {rate} at most")));
    }
    if stamped > ticks {
        let what = format!("{stamped_option} is {stamped}, more than --tick-rate, which is {ticks}");
        let hint = format!(
            "one message of a slice carries a time: make {stamped_option} {ticks} at most, or raise --tick-rate"
        );
        return Err(Hinted::of_options(what, hint));
    }
    Ok(())
}

fn below_ticks(option: &str, rate: u64, ticks: u64) -> Hinted {
    let what = format!("{option} is {rate}, less than --tick-rate, which is {ticks}");
    let hint = match rate {
        0 => format!("make {option} {ticks} at least"),
        _ => format!("make --tick-rate {rate} at most, or {option} {ticks} at least"),
    };
    Hinted::of_options(what, hint)
}

/// Messages that all carry a time are encoded each time.
fn check_pre_enc(encodes_once: bool, rate: u64, option: &str, stamped: StampRate) -> Result<(), Hinted> {
    if encodes_once && rate > 0 && stamped == StampRate::All {
        let what =
            format!("--pre-enc has no effect with {option} all: what carries a time is encoded each time");
        return Err(Hinted::of_options(what, format!("leave --pre-enc out, or give {option} a number")));
    }
    Ok(())
}

/// Common items do not exceed the items of each thread.
fn check_common(items: &ItemArgs, threads: usize) -> Result<(), Hinted> {
    let (common, all) = (items.common_item_count, items.item_count);
    let each = all / threads.max(1);
    if common <= each {
        return Ok(());
    }
    let what = format!(
        "--common-item-count is {common}, more than each of {threads} threads has of --item-count, which is {all}"
    );
    Err(Hinted::of_options(what, format!("make it {each} at most")))
}

#[cfg(test)]
mod tests {
    use super::super::of;
    use super::*;
    use crate::omm::cases;

    fn broken(said: Result<(), Hinted>) -> String {
        said.unwrap_err().to_string()
    }

    #[test]
    fn rules_name_both_options_and_their_values() {
        for [line, said] in cases(
            "
                --server localhost => --server is 'localhost'; expected HOST:PORT, such as localhost:14002
                --server :14002 => --server is ':14002'; expected HOST:PORT, such as localhost:14002
                --server localhost:99999 => --server is 'localhost:99999', and '99999' is no port; expected 1 to 65535
                --standby feed:0 => --standby is 'feed:0', and '0' is no port; expected 1 to 65535
                --request-rate 10 => --request-rate is 10, less than --tick-rate, which is 1000
                --request-rate 0 => --request-rate is 0, less than --tick-rate, which is 1000
                --posting-rate 10 => --posting-rate is 10, less than --tick-rate, which is 1000
                --generic-msg-rate 10 => --generic-msg-rate is 10, less than --tick-rate, which is 1000
                --posting-latency-rate 1 => --posting-latency-rate is 1, more than --posting-rate, which is 0
                --generic-msg-rate 5000 --generic-msg-latency-rate 2000
                    => --generic-msg-latency-rate is 2000, more than --tick-rate, which is 1000
                --posting-rate 1000 --snapshot => --posting-rate is 1000, and --snapshot closes every item with its image
                --generic-msg-rate 1000 --snapshot => --generic-msg-rate is 1000, and --snapshot closes every item with its image
                --item-count 9 --threads -1,-1 --common-item-count 5
                    => --common-item-count is 5, more than each of 2 threads has of --item-count, which is 9
                --delay-steady-state-calc 30001 => --delay-steady-state-calc is 30001 ms; expected 30000 at most
                --delay-steady-state-calc 2001 --steady-state-time 2
                    => --delay-steady-state-calc is 2001 ms, and --steady-state-time 2 s: nothing would count
            ",
        ) {
            assert_eq!(broken(of::<ConsumerArgs>(&line).check()), said, "{line}");
        }
        for [line, said] in cases(
            "
                --update-rate 10 => --update-rate is 10, less than --tick-rate, which is 1000
                --update-rate 0 --latency-update-rate 10 => --latency-update-rate is 10, more than --update-rate, which is 0
                --tick-rate 5 => --latency-update-rate is 10, more than --tick-rate, which is 5
                --api-threads 0,1 => --api-threads names 2, and --threads 1
                --pack-buffer-size 9 => --pack-buffer-size is 9, and --max-pack-count 1: nothing is packed
                --generic-msg-rate 10 => --generic-msg-rate is 10, less than --tick-rate, which is 1000
                --generic-msg-rate 5000 --generic-msg-latency-rate 6000
                    => --generic-msg-latency-rate is 6000, more than --generic-msg-rate, which is 5000
                --pre-enc --latency-update-rate all
                    => --pre-enc has no effect with --latency-update-rate all: what carries a time is encoded each time
                --pre-enc --generic-msg-rate 1000 --generic-msg-latency-rate all
                    => --pre-enc has no effect with --generic-msg-latency-rate all: what carries a time is encoded each time
            ",
        ) {
            assert_eq!(broken(of::<ProviderArgs>(&line).check()), said, "{line}");
        }
        for [line, said] in cases(
            "
                --server [::1]:x => --server is '[::1]:x', and 'x' is no port; expected 1 to 65535
                --update-rate 10 => --update-rate is 10, less than --tick-rate, which is 1000
                --api-threads 0,1 => --api-threads names 2, and --threads 1
                --item-count 10 --common-item-count 11
                    => --common-item-count is 11, more than each of 1 threads has of --item-count, which is 10
            ",
        ) {
            assert_eq!(broken(of::<NiProviderArgs>(&line).check()), said, "{line}");
        }
    }

    #[test]
    fn what_keeps_to_the_rules_is_taken() {
        for line in [
            "",
            "--posting-rate 1000 --posting-latency-rate 1000 --generic-msg-rate 2000 --generic-msg-latency-rate 10",
            "--item-count 10 --threads -1,-1 --common-item-count 5",
            "--delay-steady-state-calc 30000",
            "--request-rate 5 --tick-rate 5",
            "--server [::1]:14002 --standby feed:1",
        ] {
            assert!(of::<ConsumerArgs>(line).check().is_ok(), "{line}");
        }
        for line in [
            "",
            "--update-rate 0",
            "--update-rate 0 --latency-update-rate 0",
            "--update-rate 0 --latency-update-rate all",
            "--latency-update-rate all --generic-msg-rate 1000 --generic-msg-latency-rate all",
            "--pre-enc",
            "--max-pack-count 2 --pack-buffer-size 9",
        ] {
            assert!(of::<ProviderArgs>(line).check().is_ok(), "{line}");
        }
        assert!(of::<NiProviderArgs>("--item-count 10 --common-item-count 10").check().is_ok());
    }
}
