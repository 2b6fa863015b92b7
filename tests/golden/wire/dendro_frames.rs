// Wrote the streams beside it, with the crate dendro 0.3.4. As src/main.rs of a package that
// depends on dendro:
//     cargo run -- random 39 40 dendro.bin > dendro.txt            frames of all kinds at random
//     cargo run -- publish PATH published.bin > published.txt      an archive of dendro_writer.rs,
//                                                                  from its beginning, and two polls
//     cargo run -- read BIN                                        what the crate finds in a stream
//     cargo run -- apply BIN PATH                                  makes an archive of a stream
// sent.bin is what tests/unit/test_replication_golden.c sends, sent.txt what `apply` said of it.
use dendro::archive::{Archive, SegmentMeta, WalRow};
use dendro::replicate::wire::{encode_frame, write_preamble, FrameReader};
use dendro::replicate::{ArchivePublisher, Frame, IndexKind, Subscriber};
use dendro::segment::{EncodeResult, SegmentEncoder};
use dendro::writer::Writer;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

struct Maker(u64);

impl Maker {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13; // xorshift64
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }

    fn number(&mut self) -> u64 {
        let ends = [0, 1, i64::MAX as u64, i64::MIN as u64, u64::MAX, 255, 1000];
        match self.below(10) as usize {
            pick if pick < ends.len() => ends[pick],
            _ => self.next(),
        }
    }

    fn text(&mut self) -> String {
        let pieces =
            ["a", "orders", "ä", "€", "🌊", "/", "\"", "\u{7f}", "\u{ffff}", "_2", "\0"];
        let count = self.below(8);
        (0..count).map(|_| pieces[self.below(11) as usize]).collect()
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let count = self.below(most + 1);
        (0..count).map(|_| self.next() as u8).collect()
    }

    fn option(&mut self, most: u64) -> Option<Vec<u8>> {
        if self.below(2) == 1 {
            Some(self.bytes(most))
        } else {
            None
        }
    }

    fn map(&mut self) -> BTreeMap<String, String> {
        let count = self.below(6);
        (0..count).map(|_| (self.text(), self.text())).collect()
    }

    fn rows(&mut self) -> Vec<WalRow> {
        let count = self.below(12);
        let one = |maker: &mut Maker| WalRow {
            stream: maker.text(),
            ts: maker.number() as i64,
            wall_offset: maker.number() as i64,
            row: maker.bytes(60),
        };
        (0..count).map(|_| one(self)).collect()
    }

    fn frame(&mut self) -> Frame {
        let source = self.number() as u32;
        match self.below(5) {
            0 => Frame::Handshake {
                source,
                uuid: if self.below(2) == 1 { Some(self.text()) } else { None },
                labels: self.map(),
                metadata: self.map(),
                clock_anchor_wall_ns: self.number() as i64,
                complete: self.below(2) == 1,
            },
            1 => Frame::Index {
                source,
                stream: self.text(),
                ts: self.number() as i64,
                kind: if self.below(2) == 1 { IndexKind::Delta } else { IndexKind::Full },
                state: (self.number(), self.number()),
                blob: self.bytes(200),
            },
            2 => Frame::Rows {
                source,
                seq: self.number(),
                index_state: (self.number(), self.number()),
                rows: self.rows(),
            },
            3 => Frame::Segment {
                source,
                stream: self.text(),
                meta: SegmentMeta {
                    rows: self.number() & i64::MAX as u64,
                    first_ts: self.number() as i64,
                    last_ts: self.number() as i64,
                },
                bytes: self.bytes(100),
                caller_index: self.option(10),
            },
            _ => Frame::ClockOffset {
                source,
                ts: self.number() as i64,
                offset_ns: self.number() as i64,
            },
        }
    }
}

// As tests/support/wire_kit.c prints frames.

fn text(name: &str, bytes: &[u8]) -> String {
    let one = |&c: &u8| match c {
        0x20..=0x7e if c != b'"' && c != b'\\' => (c as char).to_string(),
        _ => format!("\\x{c:02x}"),
    };
    format!(" {name}=\"{}\"", bytes.iter().map(one).collect::<String>())
}

fn map(name: &str, map: &BTreeMap<String, String>) -> String {
    let one = |(key, value): (&String, &String)| {
        text("key", key.as_bytes()) + &text("value", value.as_bytes())
    };
    format!(" {name}({})={{{} }}", map.len(), map.iter().map(one).collect::<String>())
}

fn print(frame: &Frame) {
    let state = |(a, b): &(u64, u64)| format!(" state={a:016x}.{b:016x}");
    let line = match frame {
        Frame::Handshake { source, uuid, labels, metadata, clock_anchor_wall_ns, complete } => {
            format!("handshake source={source}")
                + &uuid.as_ref().map(|one| text("uuid", one.as_bytes())).unwrap_or_default()
                + &map("labels", labels)
                + &map("metadata", metadata)
                + &format!(" anchor={clock_anchor_wall_ns} complete={}", u8::from(*complete))
        }
        Frame::Index { source, stream, ts, kind, state: at, blob } => {
            let form = if *kind == IndexKind::Delta { "delta" } else { "full" };
            format!("index source={source}{}", text("series", stream.as_bytes()))
                + &format!(" ts={ts} {form}{}{}", state(at), text("bytes", blob))
        }
        Frame::Rows { source, seq, index_state, rows } => {
            let one = |row: &WalRow| {
                text("series", row.stream.as_bytes())
                    + &format!(" ts={} wall={}", row.ts, row.wall_offset)
                    + &text("bytes", &row.row)
            };
            format!("rows source={source} seq={seq}{} count={}", state(index_state), rows.len())
                + &rows.iter().map(one).collect::<String>()
        }
        Frame::Segment { source, stream, meta, bytes, caller_index } => {
            format!("segment source={source}{}", text("series", stream.as_bytes()))
                + &format!(" rows={} first={} last={}", meta.rows, meta.first_ts, meta.last_ts)
                + &text("bytes", bytes)
                + &caller_index.as_ref().map(|one| text("index", one)).unwrap_or_default()
        }
        Frame::ClockOffset { source, ts, offset_ns } => {
            format!("clock offset source={source} ts={ts} offset={offset_ns}")
        }
        _ => "another".to_string(),
    };
    println!("{line}");
}

fn random(seed: u64, count: u64, path: &str) {
    let mut maker = Maker(seed);
    let mut out = Vec::new();
    write_preamble(&mut out).unwrap();
    for _ in 0..count {
        let frame = maker.frame();
        encode_frame(&frame, &mut out).unwrap();
        print(&frame);
        if maker.below(4) == 0 {
            out.extend_from_slice(&[5, 0, 0, 0, 200, 1, 2, 3, 4]); // of a kind nobody knows
        }
    }
    std::fs::write(path, out).unwrap();
}

fn publish(archive: &str, path: &str) {
    let archive = Archive::open(Path::new(archive)).unwrap();
    let (mut publisher, mut frames) = ArchivePublisher::catching_up(&archive, i64::MIN).unwrap();
    frames.extend(publisher.next(&archive).unwrap());
    frames.extend(publisher.next(&archive).unwrap());
    let mut out = Vec::new();
    write_preamble(&mut out).unwrap();
    for frame in &frames {
        encode_frame(frame, &mut out).unwrap();
        print(frame);
    }
    std::fs::write(path, out).unwrap();
}

fn read(path: &str) {
    let mut reader = FrameReader::new(File::open(path).unwrap()).unwrap();
    while let Some(frame) = reader.next_frame().unwrap() {
        print(&frame);
    }
    eprintln!("skipped {}", reader.skipped());
}

struct Silent;

impl SegmentEncoder for Silent {
    fn encode(&self, _stream: &str, _rows: &[WalRow]) -> EncodeResult {
        Ok(None)
    }
}

fn apply(path: &str, archive: &str) {
    let mut reader = FrameReader::new(File::open(path).unwrap()).unwrap();
    let mut subscriber =
        Subscriber::new(Writer::create(Path::new(archive), Box::new(Silent)).unwrap());
    while let Some(frame) = reader.next_frame().unwrap() {
        println!("{:?}", subscriber.apply(frame).unwrap());
    }
    subscriber.sync().unwrap();
    subscriber.finish().unwrap();
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args[1].as_str() {
        "random" => random(args[2].parse().unwrap(), args[3].parse().unwrap(), &args[4]),
        "publish" => publish(&args[2], &args[3]),
        "apply" => apply(&args[2], &args[3]),
        _ => read(&args[2]),
    }
}
