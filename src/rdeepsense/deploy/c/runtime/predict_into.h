/* One prediction into one array, whatever it consists of: its parts begin `apart` floats from each
   other. PARTS says how many there are. */
#if CLASSES && LAPLACE
#define PARTS 2
#elif CLASSES
#define PARTS 1
#elif LAPLACE
#define PARTS 3
#else
#define PARTS 2
#endif

static int predict_into(const float *x, float *out, size_t apart, void *scratch)
{
#if CLASSES && LAPLACE
    return model_predict(x, out, out + apart, scratch);
#elif CLASSES
    (void)apart;
    return model_predict(x, out, scratch);
#elif LAPLACE
    return model_predict(x, out, out + apart, out + 2 * apart, scratch);
#else
    return model_predict(x, out, out + apart, scratch);
#endif
}
