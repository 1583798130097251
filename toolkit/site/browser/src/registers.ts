/**
 * The registers' own Parquet files, read in the reader's browser.
 *
 *     for (const row of await table("embedded", "runs", ["run_id", "seed"])) row["seed"];
 *
 * They travel as scripts of the site, which a page may load where it may not fetch: opened from a folder. Each is
 * held against the SHA-256 of the study's manifest before it is read.
 */

import type { FileMetaData } from "hyparquet";
import { canHash, fromBase64, sha256 } from "./bytes";
import { load, once } from "./page";
import type { Parquet } from "./parquet";

/** A value of a register: whole numbers of 64 bits are bigint, decimals numbers, times Date, lists arrays. */
export type Value = string | number | bigint | boolean | Date | null | Value[];
export type Row = Record<string, Value>;

/** One file of a table, as the study's manifest names it. */
export interface RegisterFile {
  file: string;
  sha256: string;
  bytes: number;
  rows: number;
  /** The one run that the file is about, where that is known. */
  run?: string | null | undefined;
  /** Study and path of the script that carries it, where another study's does. */
  at?: string | undefined;
}

export interface RegisterTable {
  rows: number;
  columns: string[];
  files: RegisterFile[];
}

/** A file whose bytes are at hand, and what was decoded of it. */
interface Opened {
  bytes: ArrayBuffer;
  metadata: FileMetaData;
  columns: Set<string>;
  rows: Row[];
}

/** What a study's script holds: its manifest, byte for byte, and what that cannot say. */
interface Left {
  manifest: string;
  /** Files that another study's scripts carry: study and path there. */
  at: Record<string, string>;
  /** The one run of a file, where that is not what its name says. */
  runs: Record<string, string | null>;
  /** Tables that the site does not carry. */
  blobs: string[];
  largest_file: number;
}

/** A study's manifest. */
export interface Manifest {
  /** The registration's frozen list and its amendments, as hashes. */
  registration: { name: string; sha256: string; amendments: Record<string, string> };
  seal: string;
  tables: Record<string, { rows: number; columns: string[]; files: string[]; row_sha256: string }>;
  files: Record<string, { sha256: string; bytes: number; rows: number }>;
}

declare global {
  /** What the scripts of the registers leave: a study's own by its name, a file in base64 by study and path. */
  var toolkitRegisters: Record<string, unknown> | undefined;
}
const left = (): Record<string, unknown> => (globalThis.toolkitRegisters ??= {});

const catalogues = new Map<string, Promise<Record<string, RegisterTable>>>();
const opened = new Map<string, Promise<Opened>>();

/** The tables of a study that this site carries, by name, as its manifest lists them. */
export function catalogue(study: string): Promise<Record<string, RegisterTable>> {
  return once(catalogues, study, async () => {
    const { manifest, at, runs, blobs, largest_file } = await leftBy<Left>(study);
    const said = JSON.parse(manifest) as Manifest;
    const tables = Object.entries(said.tables).map(([name, { rows, columns, files }]) => {
      const ofRuns = files.length > 1 && columns.includes("run_id");
      const listed = files.map((file): RegisterFile => {
        const run = file in runs ? runs[file] : file.replace(/^.*\/|\.parquet$/g, "");
        return { file, ...said.files[file]!, ...(ofRuns && { run }), ...(at[file] && { at: at[file] }) };
      });
      return [name, { rows, columns, files: listed }] as const;
    });
    const isCarried = ({ files }: RegisterTable) => files.every(({ bytes }) => bytes <= largest_file);
    return Object.fromEntries(tables.filter(([name, table]) => !blobs.includes(name) && isCarried(table)));
  });
}

/** What the script of a study, a registration or a file leaves under its name. */
export async function leftBy<T>(name: string): Promise<T> {
  if (!(name in left())) await load(`data/${name.replace(/\.parquet$/, "")}.js`);
  return left()[name] as T;
}

/** The exact text of a study's manifest. */
export async function manifestText(study: string): Promise<string> {
  return (await leftBy<Left>(study)).manifest;
}

/** The rows of a whole table of a study, with all columns where none are named. */
export async function table(study: string, name: string, columns?: string[]): Promise<Row[]> {
  const known = (await catalogue(study))[name];
  if (!known) throw new Error(`this site does not carry the table ${name} of ${study}`);
  const parts = await Promise.all(known.files.map((entry) => rowsOf(study, entry, columns ?? known.columns)));
  return parts.flat();
}

/** The rows of a file, with columns that are named or with all. What was decoded once is kept, and rows have it, too. */
export async function rowsOf(study: string, entry: RegisterFile, named?: string[]): Promise<Row[]> {
  const key = `${study}/${entry.file}`;
  const held = await once(opened, key, () => open(entry.at ?? key, entry.sha256));
  const { parquetSchema } = await reader();
  const names = named ?? parquetSchema(held.metadata).children.map((child) => child.element.name);
  const absent = names.filter((name) => !held.columns.has(name));
  if (absent.length) await decode(held, absent);
  return held.rows;
}

async function reader(): Promise<Parquet> {
  if (!globalThis.toolkitParquet) await load("parquet.js");
  return globalThis.toolkitParquet as Parquet;
}

async function open(key: string, expected: string): Promise<Opened> {
  const text = await leftBy<unknown>(key);
  if (typeof text !== "string") throw new Error(`${key} is not in the script that should carry it`);
  delete left()[key];
  const bytes = fromBase64(text);
  const found = canHash() ? await sha256(bytes) : expected;
  if (found !== expected)
    throw new Error(`${key} is not the file that the manifest names: expected SHA-256 ${expected}, found ${found}`);
  return { bytes: bytes.buffer, metadata: (await reader()).parquetMetadata(bytes.buffer), columns: new Set(), rows: [] };
}

async function decode(held: Opened, columns: string[]): Promise<void> {
  const { decompress, parquetReadObjects } = await reader();
  const compressors = { ZSTD: (input: Uint8Array, length: number) => decompress(input, new Uint8Array(length)) };
  const { bytes: file, metadata } = held;
  const read = await parquetReadObjects({ file, metadata, columns, compressors });
  for (const name of columns) {
    const { converted_type: type, scale = 0 } = metadata.schema.find((one) => one.name === name) ?? {};
    // The reader multiplies by a power of ten, which turns 0.1 into 0.09999999999999999.
    const exact = (value: Value) => (type === "DECIMAL" && typeof value === "number" ? Number(value.toFixed(scale)) : value);
    for (const row of read) row[name] = exact((row[name] as Value | undefined) ?? null);
    held.columns.add(name);
  }
  held.rows = read.map((row, at) => Object.assign(held.rows[at] ?? {}, row as Row));
}

/** A value as text. */
export function shown(value: Value): string {
  if (value === null || value === undefined) return "null";
  if (value instanceof Date) return value.toISOString();
  if (typeof value !== "object") return String(value);
  return JSON.stringify(value, (_, part: unknown) => (typeof part === "bigint" ? String(part) : part));
}
