/* Plain C99: no library is called, nothing is allocated, nothing global is written. */
#include "model.h"

#include <stddef.h>
#include <stdint.h>

#include "config.h"

#include "numbers.h"

#if ENCODED
#include "encoding.h"
#endif

#if GUARD
#include "guard.h"
#endif

#if REFUSES
#include "refuse.h"
#endif

#if EMBEDDED
#include "embedding.h"
#endif

#if LAPLACE
#include "laplace.h"
#endif

#if WINDOWS
#include "window_network.h"
#elif INT8
#include "int8_kernels.h"

#include "int8_network.h"
#elif MANY && SINGLES
#include "float_kernels.h"

#include "float_piece.h"

#include "float_network.h"
#else
#include "float_kernels.h"

#include "float_network.h"
#endif

#if NOVELTY
#include "novelty.h"
#endif

#if LIVE || NARROWED
#include "turned.h"
#endif

#if NARROWED
#include "narrow.h"
#endif

#if CLASSES
#include "classes.h"
#elif LIVE
#include "regression.h"

#include "live.h"
#else
#include "regression.h"
#endif

#if STREAMS
#include "stream.h"
#endif

#if SAMPLED
#include "sampled.h"

#include "decide.h"

#include "push.h"
#endif

#if STREAMS && LIVE
#include "live_interval.h"
#endif

#if MANY && WINDOWS
#include "each.h"
#elif MANY
#include "many.h"
#endif
