// event.m: shared events.

#include "sim.h"

@implementation SimEvent
- (id)init {
  self = [super init];
  pthread_mutex_init(&lock, NULL);
  pthread_cond_init(&changed, NULL);
  simmetal_count(GAUGE_EVENTS, 1);
  return self;
}
- (void)dealloc {
  pthread_cond_destroy(&changed);
  pthread_mutex_destroy(&lock);
  simmetal_count(GAUGE_EVENTS, -1);
  [super dealloc];
}
- (uint64_t)signaledValue {
  pthread_mutex_lock(&lock);
  uint64_t v = value;
  pthread_mutex_unlock(&lock);
  return v;
}
- (void)setSignaledValue:(uint64_t)v {
  pthread_mutex_lock(&lock);
  value = v;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}
- (void)waitFor:(uint64_t)v {
  pthread_mutex_lock(&lock);
  while (value < v)
    pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}
@end
