-- The tables that each question reads, of the trials of one task.

-- `facts`: what the drive noted. `dumps` and `entry_dumps`: what stores held at the end, as numbers and as bytes;
-- their entries are records of the roles `<store>-dump` and `<store>-entries`, with the number of the dump as offset.
-- `committed`: the roles of topics that a read_committed reader read; none if log segments could not be read.
create temp table trials (
    name varchar,
    trial int,
    "check" varchar,
    promises varchar[],
    delivered varchar,
    once boolean,
    partitions int,
    facts map(varchar, bigint),
    logs struct(
        promise varchar, role varchar, replay varchar, judged varchar, key int, folded boolean, counted boolean,
        beside varchar, punctuated boolean, history boolean, puts boolean, handled boolean
    )[],
    dumps struct(store varchar, partition int, task_type varchar, "offset" bigint, title varchar)[],
    entry_dumps struct(store varchar, partition int, task_type varchar, "offset" bigint, title varchar)[],
    entry_stores struct(store varchar, form varchar, retention bigint)[],
    committed varchar[]
);

-- As `spark_jobs.tables` says; `timestamp` in ms since the epoch.
create temp table records (
    trial int,
    role varchar,
    partition int,
    "offset" bigint,
    timestamp bigint,
    key int,
    value bigint,
    headers varchar,
    raw varchar
);

-- The entries of the brokers' log segments: `onceproof.model.segments.LogEntry`.
create temp table entries (
    trial int,
    kind varchar,
    role varchar,
    partition int,
    first bigint,
    last bigint,
    producer bigint,
    epoch int,
    sequence int,
    last_sequence int,
    transactional boolean,
    of_role varchar,
    of_partition int,
    position bigint,
    timestamp bigint
);

-- The records that a read_committed reader saw, of trials with entries; one that it could not decode has no key.
create temp table seen (
    trial int, role varchar, partition int, "offset" bigint, timestamp bigint, key int, value bigint
);

-- The places of records that could not be decoded, of all trials, by their names.
create temp table undecoded (name varchar, role varchar, partition int, "offset" bigint);
