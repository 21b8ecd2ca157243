//! iceoryx2: publish and subscribe between processes, without a daemon.
//!
//! Sound because a loaned sample is written in full before it is said to be.

#![allow(unsafe_code)]

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;

use super::{Place, Scope, System};
use crate::measuring::{Receiver, Sender};
use crate::message::Message;
use crate::stage::{Role, Stage};

/// Samples that wait for a subscriber at most.
const BUFFER: usize = 1024;
/// Samples that one look may give.
const BATCH: u64 = 256;

pub(crate) const SYSTEM: System = System {
    name: "iceoryx2",
    title: "iceoryx2",
    peer: "iceoryx2",
    place: Place::Processes,
    scope: Scope::Queue,
    settings: "slices of bytes, loaned without initialising and written in place; buffer of 1,024 samples, no overflow, the \
               publisher retries until delivered",
    run,
};

fn run(stage: &Stage) -> anyhow::Result<()> {
    set_log_level(LogLevel::Error);
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let name: ServiceName = stage.case.id.as_str().try_into()?;
    let service = node
        .service_builder(&name)
        .publish_subscribe::<[u8]>()
        .enable_safe_overflow(false)
        .subscriber_max_buffer_size(BUFFER)
        .max_publishers(1)
        .max_subscribers(1)
        .open_or_create()?;
    if stage.role == Role::Receiver {
        let subscriber = service.subscriber_builder().buffer_size(BUFFER).create()?;
        return stage.receive(Outlet(subscriber));
    }
    let publisher = service
        .publisher_builder()
        .initial_max_slice_len(stage.case.metric.bytes())
        .max_loaned_samples(1)
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()?;
    stage.send(Inlet(publisher))
}

struct Inlet(Publisher<ipc::Service, [u8], ()>);

impl Sender for Inlet {
    fn connect(&mut self) -> anyhow::Result<()> {
        Ok(self.0.update_connections()?)
    }

    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        let Ok(mut sample) = self.0.loan_slice_uninit(message.len()) else { return false };
        let bytes = sample.payload_mut();
        // SAFETY: the slice is exactly as long as the message, which writes all of it and reads nothing; so it is
        // initialised as the second call says.
        let sample = unsafe {
            message.fill(std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()));
            sample.assume_init()
        };
        sample.send().is_ok()
    }
}

struct Outlet(Subscriber<ipc::Service, [u8], ()>);

impl Receiver for Outlet {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        for count in 0..BATCH {
            let Ok(Some(sample)) = self.0.receive() else { return count };
            each(&sample);
        }
        BATCH
    }
}
