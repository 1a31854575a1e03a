"""Kafka: where a topic is, how its brokers are spoken to, and what its messages say.

Sources (`kelda.io.sources.kafka`) and sinks (`kelda.io.sinks.kafka`) stand on this. The client, the package
`confluent-kafka`, is imported when it is first needed.
"""
