/* librdkafka waits with cnd_timedwait until a time of the realtime clock. Within glibc that calls pthread_cond_timedwait
   directly, past libfaketime, so that with a clock an hour ahead it waits for an hour. This goes through it. */

#include <errno.h>
#include <pthread.h>
#include <threads.h>

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
    int error = pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);
    return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}
