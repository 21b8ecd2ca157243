// A subscriber that joins late at Aeron Archive, as `make bench-bridge ARCHIVE=JAR` runs it:
//
//   java -cp aeron-all.jar LateJoin.java FOLDER DRIVER PAST RATE BYTES
//
// A publication at RATE messages a second is recorded in FOLDER by an archiving media driver of this process, whose files are in the folder DRIVER.
// When PAST messages are published, a client connects to the archive and replays the recording, which goes on with what is published meanwhile. Prints
// a line of JSON: how many messages there were when the client began, how long until it had all of them, and how long until it was less than 10 ms
// behind.

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.ArchivingMediaDriver;
import io.aeron.archive.client.AeronArchive;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import java.io.File;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.util.concurrent.atomic.AtomicLong;
import org.agrona.concurrent.UnsafeBuffer;

public final class LateJoin
{
    private static final int STREAM = 14040;
    private static final int REPLAY = 14041;

    public static void main(final String[] arguments) throws Exception
    {
        if (arguments.length != 5)
        {
            System.err.println("usage: java -cp aeron-all.jar LateJoin.java FOLDER DRIVER PAST RATE BYTES");
            System.exit(2);
        }
        final String folder = arguments[0];
        final long past = Long.parseLong(arguments[2]);
        final long rate = Long.parseLong(arguments[3]);
        final int bytes = Integer.parseInt(arguments[4]);
        final String control = channel();
        final MediaDriver.Context driver = new MediaDriver.Context()
            .aeronDirectoryName(arguments[1])
            .threadingMode(ThreadingMode.SHARED)
            .spiesSimulateConnection(true)
            .dirDeleteOnStart(true)
            .dirDeleteOnShutdown(true);
        final Archive.Context archive = new Archive.Context()
            .aeronDirectoryName(driver.aeronDirectoryName())
            .archiveDir(new File(folder, "archive"))
            .threadingMode(ArchiveThreadingMode.SHARED)
            .controlChannel(control)
            .replicationChannel("aeron:udp?endpoint=localhost:0")
            .deleteArchiveOnStart(true);
        try (ArchivingMediaDriver media = ArchivingMediaDriver.launch(driver, archive);
            AeronArchive above = AeronArchive.connect(client(driver, control));
            ExclusivePublication publication = above.addRecordedExclusivePublication(channel(), STREAM))
        {
            final AtomicLong published = new AtomicLong();
            final Thread publisher = new Thread(() -> publish(publication, rate, bytes, published));
            publisher.setDaemon(true);
            publisher.start();
            while (published.get() < past)
            {
                Thread.sleep(1);
            }
            final long begun = System.nanoTime();
            final long behind = published.get();
            try (AeronArchive late = AeronArchive.connect(client(driver, control)))
            {
                final long recording = late.findLastMatchingRecording(0, "endpoint=", STREAM, publication.sessionId());
                final Subscription replay = late.replay(recording, 0, Long.MAX_VALUE, channel(), REPLAY);
                final long[] read = {0};
                double pastS = 0;
                double levelS = 0;
                while (levelS == 0)
                {
                    if (replay.poll((buffer, offset, length, header) -> read[0]++, 256) == 0)
                    {
                        Thread.yield();
                        continue;
                    }
                    final double elapsed = (System.nanoTime() - begun) / 1e9;
                    if (pastS == 0 && read[0] >= behind)
                    {
                        pastS = elapsed;
                    }
                    if (pastS != 0 && read[0] >= published.get() - rate / 100)
                    {
                        levelS = elapsed;
                    }
                }
                System.out.printf("{\"past\":%d,\"past_s\":%.4f,\"level_s\":%.4f}%n", behind, pastS, levelS);
                System.out.flush();
            }
        }
        // The publisher publishes until the program ends.
        System.exit(0);
    }

    private static AeronArchive.Context client(final MediaDriver.Context driver, final String control)
    {
        return new AeronArchive.Context()
            .aeron(Aeron.connect(new Aeron.Context().aeronDirectoryName(driver.aeronDirectoryName())))
            .ownsAeronClient(true)
            .controlRequestChannel(control)
            .controlResponseChannel("aeron:udp?endpoint=localhost:0");
    }

    private static void publish(
        final ExclusivePublication publication, final long rate, final int bytes, final AtomicLong published)
    {
        final UnsafeBuffer message = new UnsafeBuffer(new byte[bytes]);
        final long begun = System.nanoTime();
        for (long number = 0; !publication.isClosed(); number++)
        {
            final long due = begun + number * 1_000_000_000L / rate;
            while (System.nanoTime() < due)
            {
                Thread.yield();
            }
            message.putLong(0, number);
            while (publication.offer(message, 0, bytes) < 0)
            {
                if (publication.isClosed())
                {
                    return;
                }
                Thread.yield();
            }
            published.lazySet(number + 1);
        }
    }

    private static String channel() throws Exception
    {
        try (DatagramSocket free = new DatagramSocket(0, InetAddress.getLoopbackAddress()))
        {
            return "aeron:udp?endpoint=localhost:" + free.getLocalPort();
        }
    }
}
