/** The reader of Parquet as a script of its own, which the scripts of several pages load once they need it. */

import { decompress } from "fzstd";
import { parquetMetadata, parquetReadObjects, parquetSchema } from "hyparquet";

const parquet = { decompress, parquetMetadata, parquetReadObjects, parquetSchema };
export type Parquet = typeof parquet;

declare global {
  var toolkitParquet: Parquet | undefined;
}
globalThis.toolkitParquet = parquet;
