/* One interval of a stream into one array, in place of a row: see predict_into.h. */
#if CLASSES
#define PARTS 1
#else
#define PARTS 2
#endif

#if RUNS
static model_running stream;
#else
static model_window stream;
#endif

static int predict_into(const float *x, float *out, size_t apart, void *scratch)
{
    stream.seen = MODEL_INTERVALS; /* as if a window had come already */
#if CLASSES && RUNS
    (void)apart;
    return model_run_interval(&stream, x, out, scratch);
#elif CLASSES
    (void)apart;
    return model_push_interval(&stream, x, out, scratch);
#elif RUNS
    return model_run_interval(&stream, x, out, out + apart, scratch);
#else
    return model_push_interval(&stream, x, out, out + apart, scratch);
#endif
}
