/** Parquet files that stand in a page: decoded here, with nothing fetched. */

import { decompress } from "fzstd";
import { parquetReadObjects } from "hyparquet";

/** The rows of a file given as a `data:` address. */
export async function rowsOf(address: string): Promise<Record<string, unknown>[]> {
  const text = atob(address.slice(address.indexOf(",") + 1));
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return parquetReadObjects({
    file: { byteLength: bytes.length, slice: (start, end) => bytes.buffer.slice(start, end) },
    compressors: { ZSTD: (input, length) => decompress(input, new Uint8Array(length)) },
  });
}
