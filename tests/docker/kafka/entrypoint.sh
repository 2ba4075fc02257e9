#!/bin/bash
# As the official image does: prepare the data folder of a new broker, then start it, both by the mounted configuration.
set -euo pipefail
config=/mnt/shared/config/server.properties
class_path=$(< /var/lib/onceproof/artifacts/kafka_2.13-3.9.2.classpath)
run() { java -cp "$class_path" -Xmx512m "$@"; }
run kafka.tools.StorageTool format --ignore-formatted --cluster-id 5L6g3nShT-eMCtK--X86sw --config "$config"
exec java -cp "$class_path" -Xmx1g kafka.Kafka "$config"
