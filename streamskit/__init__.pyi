"""The public names of `streamskit`, each with the module that holds it.

`__init__.py` reads this list when it is imported, and type checkers read it, too: it is the only one.
"""

from .api.auto_offset_reset import AutoOffsetReset as AutoOffsetReset
from .api.close_options import CloseOptions as CloseOptions
from .api.error_handlers import DeadLetter as DeadLetter
from .api.error_handlers import ErrorHandlerContext as ErrorHandlerContext
from .api.error_handlers import LogAndContinue as LogAndContinue
from .api.error_handlers import LogAndFail as LogAndFail
from .api.error_handlers import Response as Response
from .api.processor import Cancellable as Cancellable
from .api.processor import FixedKeyProcessor as FixedKeyProcessor
from .api.processor import FixedKeyRecord as FixedKeyRecord
from .api.processor import Processor as Processor
from .api.processor import ProcessorContext as ProcessorContext
from .api.processor import PunctuationType as PunctuationType
from .api.processor import Record as Record
from .api.processor import RecordMetadata as RecordMetadata
from .api.processor import ValueTransformerWithKey as ValueTransformerWithKey
from .api.stream_partitioner import StreamPartitioner as StreamPartitioner
from .api.streams_config import StreamsConfig as StreamsConfig
from .api.timestamp_extractor import TimestampExtractor as TimestampExtractor
from .api.windows import JoinWindows as JoinWindows
from .api.windows import SessionWindows as SessionWindows
from .api.windows import SlidingWindows as SlidingWindows
from .api.windows import TimeWindows as TimeWindows
from .api.windows import UnlimitedWindows as UnlimitedWindows
from .api.windows import Windowed as Windowed
from .cluster import Cluster as Cluster
from .common.errors import BrokerError as BrokerError
from .common.errors import InvalidStateStoreError as InvalidStateStoreError
from .common.errors import InvalidStateStorePartitionError as InvalidStateStorePartitionError
from .common.errors import SetupError as SetupError
from .common.errors import StateStoreMigratedError as StateStoreMigratedError
from .common.errors import StateStoreNotAvailableError as StateStoreNotAvailableError
from .common.errors import StreamsError as StreamsError
from .common.errors import StreamsKitError as StreamsKitError
from .common.errors import StreamsNotStartedError as StreamsNotStartedError
from .common.errors import StreamsRebalancingError as StreamsRebalancingError
from .common.errors import TopologyError as TopologyError
from .common.errors import UnknownStateStoreError as UnknownStateStoreError
from .common.json_logs import log_as_json as log_as_json
from .dsl.builder import StreamsBuilder as StreamsBuilder
from .dsl.grouped_stream import CogroupedKStream as CogroupedKStream
from .dsl.grouped_stream import KGroupedStream as KGroupedStream
from .dsl.grouped_stream import SessionWindowedKStream as SessionWindowedKStream
from .dsl.grouped_stream import TimeWindowedKStream as TimeWindowedKStream
from .dsl.kstream import BranchedKStream as BranchedKStream
from .dsl.kstream import KStream as KStream
from .dsl.ktable import KGroupedTable as KGroupedTable
from .dsl.ktable import KTable as KTable
from .dsl.materialized import BufferConfig as BufferConfig
from .dsl.materialized import EmitStrategy as EmitStrategy
from .dsl.materialized import Materialized as Materialized
from .dsl.materialized import Suppressed as Suppressed
from .dsl.table_joins import GlobalKTable as GlobalKTable
from .environment.doctor import doctor as doctor
from .environment.session import spark_session as spark_session
from .jvm.functions import attempt as attempt
from .labs import check as check
from .labs import hint as hint
from .labs import progress as progress
from .labs import reset as reset
from .labs import try_out as try_out
from .queries import Catalogue as Catalogue
from .queries import Instance as Instance
from .queries.client import QueryClient as QueryClient
from .queries.instances import Instances as Instances
from .queries.metadata import HostInfo as HostInfo
from .queries.metadata import KeyQueryMetadata as KeyQueryMetadata
from .queries.metadata import StreamsMetadata as StreamsMetadata
from .queries.rest_service import RestCall as RestCall
from .queries.rest_service import RestService as RestService
from .queries.restore_listener import StateRestoreListener as StateRestoreListener
from .runtime import KafkaStreams as KafkaStreams
from .runtime import MaxFailures as MaxFailures
from .runtime import State as State
from .runtime import UncaughtExceptionResponse as UncaughtExceptionResponse
from .runtime.spark_reports import spark_tasks as spark_tasks
from .serdes import RegistryError as RegistryError
from .serdes import SchemaRegistry as SchemaRegistry
from .serdes import Serde as Serde
from .serdes import Serdes as Serdes
from .state.read_only import VersionedRecord as VersionedRecord
from .state.stores import KeyValue as KeyValue
from .state.stores import Stores as Stores
from .state.stores import ValueAndTimestamp as ValueAndTimestamp
from .testing import TopologyTestDriver as TopologyTestDriver
from .topology import Topology as Topology

__version__: str
__all__: list[str]
FACES: tuple[str, ...]
