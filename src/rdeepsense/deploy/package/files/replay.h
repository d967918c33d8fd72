#ifndef MODEL_REPLAY_H
#define MODEL_REPLAY_H

#ifdef __cplusplus
extern "C" {
#endif

/* Predicts the rows of rows.h and hands lines on that say what was predicted and what was expected.
   Returns how many predictions are not as expected. */
int model_replay(void (*line)(const char *text));

#ifdef __cplusplus
}
#endif

#endif
