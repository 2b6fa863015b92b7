// Made the archives beside it, with the crate dendro 0.3.4 and an encoder of the form that
// tests/support/plain_encoder.c has. As src/main.rs of a package that depends on dendro:
//     cargo run -- write dendro-0.3.4.tide            20 rows sealed, 10 live, finalized
//     cargo run -- kill dendro-0.3.4-killed.tide      the same, and ends without closing
//     cargo run -- resume PATH                        goes on with source 1, by 15 rows
//     cargo run -- read PATH                          what the crate finds in it
use dendro::archive::{Archive, CallerRow, Depth, SourceMeta, WalRow};
use dendro::segment::{EncodeResult, Segment, SegmentEncoder};
use dendro::writer::Writer;
use std::path::Path;

struct Plain;

impl SegmentEncoder for Plain {
    fn encode(&self, _stream: &str, rows: &[WalRow]) -> EncodeResult {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return Ok(None);
        };
        let mut bytes = b"plain".to_vec();
        for row in rows {
            bytes.extend(row.ts.to_be_bytes());
            bytes.extend((row.row.len() as u32).to_be_bytes());
            bytes.extend(&row.row);
        }
        Ok(Some(Segment {
            bytes,
            rows: rows.len() as u64,
            first_ts: first.ts,
            last_ts: last.ts,
            index: Some(rows.len().to_string().into_bytes()),
        }))
    }

    fn version(&self) -> Option<&str> {
        Some("plain-1")
    }
}

fn rows(first: i64, last: i64) -> Vec<WalRow> {
    let one = |ts: i64, stream: &str| WalRow {
        stream: stream.into(),
        ts,
        wall_offset: 1000 - ts,
        row: ts.to_string().into_bytes(),
    };
    (first..=last).flat_map(|ts| [one(ts, "a"), one(ts, "b")]).collect()
}

fn write(path: &Path, does_close: bool) {
    let mut writer = Writer::create(path, Box::new(Plain)).unwrap();
    let meta = SourceMeta {
        labels: [("k".to_string(), "v".to_string())].into(),
        metadata: Default::default(),
        clock_anchor_wall_ns: 0,
    };
    let mut source = writer.add_source(meta).unwrap();
    source.wal(rows(1, 20)).unwrap();
    source.seal(vec!["a".into(), "b".into()]).unwrap();
    source.wal(rows(21, 30)).unwrap();
    source.caller_rows("a", vec![CallerRow { ts: 3, blob: b"x".to_vec() }]).unwrap();
    source.sync().unwrap();
    if !does_close {
        std::process::abort();
    }
    source.finalize((30, 5)).unwrap();
    writer.join().unwrap();
}

fn resume(path: &Path) {
    let mut writer = Writer::open(path, Box::new(Plain)).unwrap();
    let (mut source, floor) = writer.resume_source(1, 1_000_000).unwrap();
    let floor = floor.unwrap_or(0);
    source.wal(rows(floor + 1, floor + 10)).unwrap();
    source.seal(vec!["a".into(), "b".into()]).unwrap();
    source.wal(rows(floor + 11, floor + 15)).unwrap();
    source.finalize((floor + 15, 5)).unwrap();
    writer.join().unwrap();
}

fn read(path: &Path) {
    let archive = Archive::open(path).unwrap();
    println!("sound: {}", archive.verify(Depth::Full).unwrap().is_sound());
    for source in archive.read_sources().unwrap() {
        println!("{source:?}");
        for stream in archive.all_streams(source.id).unwrap() {
            let segments = archive.read_segments(source.id, &stream).unwrap();
            let live = archive.live_wal(source.id, &stream).unwrap();
            let metas: Vec<_> = segments.iter().map(|one| (one.seq, one.meta.clone())).collect();
            let times: Vec<_> = live.iter().map(|row| row.ts).collect();
            println!("  {stream}: {metas:?}, live {times:?}");
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let path = Path::new(&args[2]);
    match args[1].as_str() {
        "write" => write(path, true),
        "kill" => write(path, false),
        "resume" => resume(path),
        _ => read(path),
    }
}
