// ccl.h: of which simulated driver a simulated library of collectives is.

#ifndef CONCORD_SIM_CCL_H
#define CONCORD_SIM_CCL_H

namespace ccl {

// driver is the library in the directory of this one, queue its function that queues one of the host's.
extern const char *const driver, *const queue;

} // namespace ccl

#endif
