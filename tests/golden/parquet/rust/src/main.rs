//! record-parquet FILE FOLDER: reads a Parquet file and writes its rows anew, in several ways.
//! Without the crate's extension types a UUID becomes 16 fixed bytes, JSON a string.

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use std::fs::File;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let file = File::open(&arguments[1]).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = builder.schema().clone();
    let batches: Vec<_> = builder.build().unwrap().map(|batch| batch.unwrap()).collect();
    let lz4_plain = WriterProperties::builder()
        .set_compression(Compression::LZ4_RAW)
        .set_dictionary_enabled(false);
    let zstd = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let v2_lz4_dictionary = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::LZ4_RAW)
        .set_data_page_row_count_limit(5)
        .set_write_batch_size(2);
    for (name, properties) in [
        ("rust_lz4_plain", lz4_plain),
        ("rust_zstd", zstd),
        ("rust_v2_lz4_dictionary", v2_lz4_dictionary),
    ] {
        let file = File::create(format!("{}/{}.parquet", arguments[2], name)).unwrap();
        let mut writer =
            ArrowWriter::try_new(file, schema.clone(), Some(properties.build())).unwrap();
        for batch in &batches {
            writer.write(batch).unwrap();
        }
        writer.close().unwrap();
    }
}
