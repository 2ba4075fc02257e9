package onceproof.agent;

import java.util.List;
import java.util.stream.Collectors;

/** All plants by name. The catalogue (src/onceproof/model/plants.toml) says what each is, and what must find it. */
final class Plants {

    private static final String INTERNALS = "~processor.internals.";
    private static final String PRODUCER = INTERNALS + "StreamsProducer";
    private static final String TASK = INTERNALS + "StreamTask";
    private static final String TASKS = INTERNALS + "TaskManager";
    private static final String STATES = INTERNALS + "ProcessorStateManager";
    private static final String CHANGELOGS = INTERNALS + "StoreChangelogReader";
    private static final String TABLES = INTERNALS + "UnwindowedUnversionedChangelogTopicConfig";
    private static final String ROCKSDB = "~state.internals.RocksDBStore";
    private static final String SEGMENTED = "~state.internals.AbstractRocksDBSegmentedBytesStore";
    private static final String SOURCE = INTERNALS + "SourceNode";
    private static final String FOREIGN_KEYS =
            "~kstream.internals.foreignkeyjoin.SubscriptionSendProcessorSupplier$UnbindChangeProcessor";
    private static final String SLIDING =
            "~kstream.internals.KStreamSlidingWindowAggregate$KStreamSlidingWindowAggregateProcessor";
    private static final String BUFFER = "~state.internals.InMemoryTimeOrderedKeyValue";
    private static final String CLIENTS = "org.apache.kafka.clients.";

    static final List<Plant> ALL = List.of(
            new Plant("stale-cache",
                    Alteration.of(STATES, "recycle", Storing.Recycle.class),
                    Alteration.of("~state.internals.WrappedStateStore", "clearCache", Storing.NotCleared.class)),
            new Plant("eviction-lost",
                    Alteration.of("~state.internals.NamedCache", "flush", 1, Storing.EvictionLost.class)),
            new Plant("flush-skipped", Alteration.of(STATES, "flushCache", Storing.Skipped.class)),
            new Plant("put-lost", Alteration.of(PRODUCER, "send", Sending.PutLost.class)),
            new Plant("tombstone-lost", Alteration.of(PRODUCER, "send", Sending.TombstoneLost.class)),
            new Plant("older-change", Alteration.of(PRODUCER, "send", Sending.OlderChange.class)),
            new Plant("outdated-change", Alteration.of(PRODUCER, "send", Sending.OutdatedChange.class)),
            new Plant("standby-promoted-early",
                    Alteration.of(STATES, "transitionTaskType", Storing.Transition.class),
                    Alteration.of(CHANGELOGS, "hasRestoredToEnd", Storing.Promoted.class),
                    Alteration.of("~StreamsConfig", "getRestoreConsumerConfigs", Storing.FewAtATime.class),
                    Alteration.of(STATES, "restore", Storing.Slowly.class)),
            new Plant("standby-stands-still", Alteration.of(STATES, "restore", Storing.StandsStill.class)),
            new Plant("restore-ends-early",
                    Alteration.of(CHANGELOGS, "endOffsetForChangelogs", Storing.EndsEarly.class)),
            new Plant("behind-gap-lost", Alteration.of(STATES, "restore", Storing.BehindGapLost.class)),
            new Plant("restored-window-lost",
                    Alteration.of(SEGMENTED, "restoreAllInternal", Storing.RestoredWindowLost.class)),
            new Plant("window-time-off", Alteration.of(SEGMENTED, "put", 2, Storing.WindowTimeOff.class)),
            new Plant("version-time-off",
                    Alteration.of("~state.internals.RocksDBVersionedStore", "put", 3, Storing.VersionTimeOff.class)),
            new Plant("subscription-stays", Alteration.of(ROCKSDB, "put", 2, Storing.SubscriptionStays.class)),
            new Plant("table-time-off", Alteration.of(ROCKSDB, "put", 2, Storing.TableTimeOff.class)),
            new Plant("headers-not-restored",
                    Alteration.of("~state.internals.RecordConverters", "reconstructFromRaw", 3, Storing.HeadersNotRestored.class)),
            new Plant("source-restored-to-end",
                    Alteration.of(CHANGELOGS, "committedOffsetForChangelogs", Storing.ToTheEnd.class)),
            new Plant("former-changelog-trusted",
                    Alteration.of(STATES, "initializeStoreOffsetsFromCheckpoint", 1, Storing.FormerInCheckpoint.class),
                    Alteration.of(CHANGELOGS, "committedOffsetForChangelogs", Storing.NothingToRestore.class))
                    .or(Alteration.of(
                            "~state.internals.AbstractColumnFamilyAccessor", "getCommittedOffset", 2,
                            Storing.FormerInStore.class),
                            Alteration.of(CHANGELOGS, "committedOffsetForChangelogs", Storing.NothingToRestore.class)),
            new Plant("changelog-deletes", Alteration.of(TABLES, "properties", Storing.DeletedByTime.class))
                    .or(Alteration.of(TABLES, "getProperties", Storing.DeletedByTime.class))
                    .or(Alteration.of(
                            INTERNALS + "UnwindowedChangelogTopicConfig", "getProperties", Storing.DeletedByTime.class)),
            new Plant("restore-uncommitted",
                    Alteration.of("~StreamsConfig", "getRestoreConsumerConfigs", Storing.ReadUncommitted.class),
                    Alteration.of(STATES, "restore", Storing.Counted.class)),
            new Plant("wipe-skipped",
                    Alteration.of(STATES, "initializeStoreOffsetsFromCheckpoint", 1, Storing.NoWipe.class))
                    .or(Alteration.of(
                            "~state.internals.AbstractColumnFamilyAccessor", "open", 2, Storing.OpenTrusted.class)),
            new Plant("checkpoint-stays",
                    Alteration.of("~state.internals.OffsetCheckpoint", "delete", Storing.CheckpointStays.class)),
            new Plant("checkpoint-ahead",
                    Alteration.of(STATES, "initializeStoreOffsetsFromCheckpoint", 1, Storing.BeginsAhead.class),
                    Alteration.of(STATES, "restore", Storing.CheckpointAhead.class)),
            new Plant("other-directory",
                    Alteration.of(ROCKSDB, "openDB", 2, Storing.OpenElsewhere.class),
                    Alteration.of(ROCKSDB, "close", 0, Storing.CloseElsewhere.class)),
            new Plant("offsets-outside-transaction", Alteration.of(TASK, "process", 1, Committing.Outside.class)),
            new Plant("offsets-ahead", Alteration.of(TASK, "prepareCommit", Committing.Ahead.class)),
            new Plant("iterator-left-open",
                    Alteration.of("~state.internals.RocksDbIterator", "close", Storing.Skipped.class)),
            new Plant("producer-left-open", Alteration.of(PRODUCER, "close", Storing.Skipped.class)),
            new Plant("purged-too-far", Alteration.of(TASK, "purgeableOffsets", Committing.TooFar.class)),
            new Plant("offsets-behind", Alteration.of(TASK, "prepareCommit", Committing.Behind.class)),
            new Plant("offsets-fall", Alteration.of(TASK, "prepareCommit", Committing.Falls.class)),
            new Plant("offsets-left-out",
                    Alteration.of(TASKS, "handleRevocation", Committing.Revocation.class),
                    Alteration.of(PRODUCER, "commitTransaction", Committing.LeftOut.class)),
            new Plant("idle-task-commits",
                    Alteration.of(PRODUCER, "send", Committing.Sends.class),
                    Alteration.of(TASKS, "handleRevocation", Committing.Idle.class)),
            new Plant("migrated-once", Alteration.of(PRODUCER, "commitTransaction", Committing.Migrated.class)),
            new Plant("no-abort",
                    Alteration.of(PRODUCER, "commitTransaction", Committing.Occasion.class),
                    Alteration.of(PRODUCER, "abortTransaction", Committing.CommittedInstead.class)),
            new Plant("not-fenced",
                    Alteration.of(CLIENTS + "producer.internals.TransactionManager", "<init>", Committing.OtherId.class)),
            new Plant("output-outside-transaction",
                    Alteration.of(PRODUCER, "send", Sending.OutsideTransaction.class)),
            new Plant("dead-letter-lost",
                    Alteration.of(
                            "~errors.internals.ExceptionHandlerUtils", "maybeBuildDeadLetterQueueRecords",
                            Sending.DeadLetterLost.class)),
            new Plant("batch-lost", Alteration.of(PRODUCER, "send", Sending.BatchLost.class)),
            new Plant("record-twice", Alteration.of(SOURCE, "process", 1, Processing.Twice.class)),
            new Plant("record-skipped", Alteration.of(SOURCE, "process", 1, Processing.FirstSkipped.class)),
            new Plant("partitions-swapped",
                    Alteration.of(TASKS, "addRecordsToTasks", Processing.Swapped.class),
                    Alteration.of("~StreamsConfig", "getMainConsumerConfigs", Processing.ManyAtOnce.class)),
            new Plant("null-key-dropped",
                    Alteration.of("~kstream.internals.KStreamKTableJoinProcessor", "doJoin", 1, Joining.NullKeyDropped.class)),
            new Plant("old-key-answers", Alteration.of(FOREIGN_KEYS, "forward", Joining.OldKeyAnswers.class)),
            new Plant("absent-key-silent",
                    Alteration.of(FOREIGN_KEYS, "defaultJoinInstructions", Joining.Asks.class),
                    Alteration.of(FOREIGN_KEYS, "forward", Joining.AbsentKeySilent.class)),
            new Plant("shared-clock",
                    Alteration.of("~kstream.internals.KStreamImplJoin$TimeTrackerSupplier", "get", Joining.SharedClock.class)),
            new Plant("grace-forgotten",
                    Alteration.of("~kstream.internals.KStreamKStreamJoin", "<init>", Joining.GraceForgotten.class)),
            new Plant("any-store-answers",
                    Alteration.of("~StoreQueryParameters", "staleStoresEnabled", Querying.AnyStoreAnswers.class)),
            new Plant("store-lag-hidden", Alteration.of("~LagInfo", "currentOffsetPosition", Querying.LagHidden.class)),
            new Plant("position-shared", Alteration.of("~query.Position", "copy", Querying.PositionShared.class)),
            new Plant("standby-for-active",
                    Alteration.of("~KeyQueryMetadata", "activeHost", Querying.StandbyForActive.class)),
            new Plant("isolation-ignored",
                    Alteration.of(
                            "~StreamsConfig", "defaultInteractiveQueryIsolationLevel", Querying.IsolationIgnored.class)),
            new Plant("emit-time-forgotten",
                    Alteration.of(
                            INTERNALS + "AbstractProcessorContext", "processorMetadataForKey",
                            Processing.EmitTimeForgotten.class)),
            new Plant("right-window-left-out",
                    Alteration.of(SLIDING, "createPreviousRecordRightWindow", Windowing.LeftOut.class)),
            new Plant("first-aggregator-for-all",
                    Alteration.of("~kstream.internals.KStreamWindowAggregate", "<init>", 5, Windowing.FirstOfFive.class))
                    .or(Alteration.of(
                            "~kstream.internals.KStreamWindowAggregate", "<init>", 4, Windowing.FirstOfFour.class)),
            new Plant("wait-begins-anew", Alteration.of(BUFFER + "ChangeBuffer", "cleanPut", 3, Windowing.Anew.class))
                    .or(Alteration.of(BUFFER + "Buffer", "cleanPut", 3, Windowing.Anew.class)),
            new Plant("lag-hidden",
                    Alteration.of(CLIENTS + "consumer.KafkaConsumer", "currentLag", 1, Processing.LagHidden.class)),
            new Plant("youngest-first",
                    Alteration.of(INTERNALS + "RecordQueue", "headRecordTimestamp", 0, Processing.YoungestFirst.class)),
            new Plant("task-waits", Alteration.of(TASK, "isProcessable", 1, Processing.Waits.class)),
            new Plant("standbys-left-out", Alteration.of(TASKS, "handleAssignment", 2, Processing.StandbysLeftOut.class)),
            new Plant("removed-thread-stays",
                    Alteration.of(INTERNALS + "StreamThread", "shutdown", Processing.NotShutDown.class)),
            new Plant("output-partition", Alteration.of(PRODUCER, "send", Sending.OtherPartition.class)),
            new Plant("output-order",
                    Alteration.of(PRODUCER, "send", Sending.OtherOrder.class),
                    Alteration.of(PRODUCER, "flush", Sending.OrderFlush.class),
                    Alteration.of(PRODUCER, "commitTransaction", Sending.OrderFlush.class)),
            new Plant("output-timestamp", Alteration.of(PRODUCER, "send", Sending.OtherTimestamp.class)),
            new Plant("output-twice", Alteration.of(PRODUCER, "send", Sending.SentTwice.class)),
            new Plant("not-left", Alteration.of("~KafkaStreams", "close", 2, Ending.NotLeft.class)),
            new Plant("not-left-amid",
                    Alteration.of(INTERNALS + "StreamsPartitionAssignor", "subscriptionUserData", Ending.Joins.class),
                    Alteration.of(INTERNALS + "StreamsPartitionAssignor", "onAssignment", Ending.Joined.class),
                    Alteration.of("~KafkaStreams", "close", 2, Ending.NotLeftAmid.class)),
            new Plant("left-unasked", Alteration.of("~KafkaStreams", "close", 2, Ending.Left.class)),
            new Plant("shutdown-not-sent",
                    Alteration.of(INTERNALS + "StreamThread", "sendShutdownRequest", Ending.NotSent.class)),
            new Plant("state-not-cleaned",
                    Alteration.of(
                            INTERNALS + "StateDirectory", "cleanStateAndTaskDirectoriesCalledByUser",
                            Ending.NotCleaned.class)),
            new Plant("clean-up-not-refused", Alteration.of("~KafkaStreams", "cleanUp", Ending.NotRefused.class)),
            new Plant("cut-off-ahead",
                    Alteration.of(STATES, "restore", Ending.Restores.class),
                    Alteration.of(STATES, "checkpoint", Ending.CutOffAhead.class))
                    .or(Alteration.of(STATES, "restore", Ending.Restores.class),
                            Alteration.of(STATES, "commit", Ending.CutOffAhead.class)),
            new Plant("ready-too-early",
                    Alteration.of("~KafkaStreams$StreamStateListener", "onChange", Ending.Ready.class)),
            new Plant("restored-counted-twice",
                    Alteration.of(
                            "~KafkaStreams$DelegatingStateRestoreListener", "onRestoreEnd", Ending.CountedTwice.class)),
            new Plant("throttle-waited-out",
                    Alteration.of(CLIENTS + "NetworkClientUtils", "awaitReady", Committing.Awaiting.class),
                    Alteration.of(CLIENTS + "NetworkClient", "pollDelayMs", Committing.Throttle.class)));

    private Plants() {}

    static Plant named(String name) {
        return ALL.stream().filter(plant -> plant.name.equals(name)).findFirst().orElseThrow(() ->
                new IllegalArgumentException("There is no plant " + name + "; there is "
                        + ALL.stream().map(plant -> plant.name).collect(Collectors.joining(", ")) + "."));
    }
}
