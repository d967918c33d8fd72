/* The model in a stream. The network stays; filters learn what it leaves over from the last hidden
   layer's numbers h, experts are weighed by the likelihood of the labels, a quantile is tracked.
   Covariances are upper triangles, row by row, in coordinates psi = B^T [h, 1] in which they begin
   as the identity and never exceed it. */

static float product(const float *restrict a, const float *restrict b)
{
    float sum = 0.0f;
    unsigned i;
    for (i = 0; i < MODEL_DIRECTIONS; ++i) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* along = C psi. */
static void multiply(const float *restrict c, const float *restrict psi, float *restrict along)
{
    unsigned i, j;
    for (i = 0; i < MODEL_DIRECTIONS; ++i) {
        along[i] = 0.0f;
    }
    for (i = 0; i < MODEL_DIRECTIONS; ++i) {
        const float own = psi[i];
        float sum = *c++ * own;
        for (j = i + 1; j < MODEL_DIRECTIONS; ++j, ++c) {
            sum += *c * psi[j];
            along[j] += *c * own;
        }
        along[i] += sum;
    }
}

static float within(float value, float most)
{
    return value > most ? most : value < -most ? -most : value;
}

void model_begin(model_state *state)
{
    unsigned f, i, j, k;
    for (f = 0; f < MODEL_FILTERS; ++f) {
        float *c = state->covariance[f];
        for (i = 0; i < MODEL_DIRECTIONS; ++i) {
            for (j = i; j < MODEL_DIRECTIONS; ++j) {
                *c++ = i == j ? 1.0f : 0.0f;
            }
        }
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            for (i = 0; i < MODEL_DIRECTIONS; ++i) {
                state->weights[f][k][i] = 0.0f;
            }
        }
    }
    for (f = 0; f <= MODEL_FILTERS; ++f) {
        for (i = 0; i < MODEL_STRETCHES; ++i) {
            state->trust[f][i] = model_prior[f * MODEL_STRETCHES + i];
        }
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        state->log_q[k] = 0.0f;
    }
    state->rows = state->labels = 0;
    state->magic = state->model = state->sum = 0;
}

/* FNV-1a of all bytes before the sum; a state has no padding. */
static uint32_t summed(const model_state *state)
{
    const unsigned char *byte = (const unsigned char *)state;
    uint32_t sum = 2166136261u;
    size_t i;
    for (i = 0; i < offsetof(model_state, sum); ++i) {
        sum = (sum ^ byte[i]) * 16777619u;
    }
    return sum;
}

void model_seal(model_state *state)
{
    state->magic = STATE_MAGIC;
    state->model = STATE_OF;
    state->sum = summed(state);
}

/* Whether a number is at most so large, which NaN never is. */
static int at_most(float value, float most)
{
    return size_of(value) <= size_of(most);
}

int model_check(const model_state *state)
{
    unsigned f, i, j, k;
    float sum = 0.0f;
    int fits = state->magic == STATE_MAGIC && state->model == STATE_OF;
    fits = fits && state->sum == summed(state);
    for (f = 0; f < MODEL_FILTERS; ++f) {
        const float *c = state->covariance[f];
        for (i = 0; i < MODEL_DIRECTIONS; ++i) {
            fits = fits && *c > 0.0f;
            for (j = i; j < MODEL_DIRECTIONS; ++j) {
                fits = fits && at_most(*c++, MOST_COVARIANCE);
            }
        }
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            for (i = 0; i < MODEL_DIRECTIONS; ++i) {
                fits = fits && size_of(state->weights[f][k][i]) < INFINITE;
            }
        }
    }
    for (f = 0; f <= MODEL_FILTERS; ++f) {
        for (i = 0; i < MODEL_STRETCHES; ++i) {
            fits = fits && state->trust[f][i] >= 0.0f;
            sum += state->trust[f][i];
        }
    }
    fits = fits && at_most(sum - 1.0f, 1e-3f);
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        fits = fits && at_most(state->log_q[k], MOST_LOG_Q);
    }
    return fits ? MODEL_OK : MODEL_BAD_STATE;
}

/* What each filter says about a row. */
static void look_out(const model_state *state, model_row *row)
{
    unsigned f, k;
    for (f = 0; f < MODEL_FILTERS; ++f) {
        const float open = left_open(state->covariance[f], MODEL_DIRECTIONS, row->psi);
        row->share[f] = WITHIN + (1.0f - WITHIN) * open;
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            row->shift[f][k] = product(row->psi, state->weights[f][k]);
        }
    }
}

/* Moves and stretches what the network said of a row, which is in `row` already. */
static int answer(int status, model_state *state, model_row *row, float *mean, float *std,
                  float *low, float *high, const work *w)
{
    float own[MODEL_FILTERS + 1], spread = 0.0f;
    unsigned f, i, k;
    if (size_of(row->std[0]) >= INFINITE) {
        for (k = 0; k < MODEL_OUTPUTS; ++k) {
            mean[k] = std[k] = low[k] = high[k] = row->std[0];
        }
        return status;
    }
    ++state->rows;
    turn(w, model_turned, MODEL_DIRECTIONS, row->psi);
    look_out(state, row);
    for (f = 0; f <= MODEL_FILTERS; ++f) {
        float stretched = 0.0f;
        own[f] = 0.0f;
        for (i = 0; i < MODEL_STRETCHES; ++i) {
            own[f] += state->trust[f][i];
            stretched += state->trust[f][i] * model_stretch[i];
        }
        spread += (f == 0 ? 1.0f : row->share[f - 1]) * stretched;
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        const float per = model_unit[k] / row->std[k];
        float shift = 0.0f, apart, reach;
        for (f = 0; f < MODEL_FILTERS; ++f) {
            shift += own[f + 1] * row->shift[f][k];
        }
        apart = own[0] * shift * shift;
        for (f = 0; f < MODEL_FILTERS; ++f) {
            const float d = row->shift[f][k] - shift;
            apart += own[f + 1] * d * d;
        }
        mean[k] = row->mean[k] + shift * model_unit[k];
        std[k] = root(spread + apart * per * per) * row->std[k];
        reach = exp_of(state->log_q[k]) * model_interval[k] * std[k];
        low[k] = row->low[k] = mean[k] - reach;
        high[k] = row->high[k] = mean[k] + reach;
    }
#if REFUSES
    status = (status & ~MODEL_UNSURE) | unsure(std);
#endif
    return status;
}

int model_live(model_state *state, const float *x, model_row *row, float *mean, float *std,
               float *low, float *high, void *scratch)
{
    const int status = model_predict(x, row->mean, row->std, scratch);
#if REFUSES
    return answer(status, state, row, mean, std, low, high, scratch) |
           unanswerable(status & ~MODEL_UNSURE, x, MODEL_INPUTS);
#else
    return answer(status, state, row, mean, std, low, high, scratch);
#endif
}

/* How the log likelihood of output k falls with a squared error of so many variances. */
static float fall(float squared, unsigned k)
{
#if TAILS
    const float df = model_freedom[k];
    return 0.5f * (df + 1.0f) * log_of_one_plus(squared / (df - 2.0f));
#else
    (void)k;
    return 0.5f * squared;
#endif
}

/* Experts are weighed by what they said of the row, with a fixed share going back. */
static void weigh(model_state *state, const model_row *row, const float *error)
{
    float logs[MODEL_FILTERS + 1][MODEL_STRETCHES], best = 0.0f, sum = 0.0f;
    unsigned f, i, k;
    for (f = 0; f <= MODEL_FILTERS; ++f) {
        for (i = 0; i < MODEL_STRETCHES; ++i) {
            const float share = (f == 0 ? 1.0f : row->share[f - 1]) * model_stretch[i];
            float log = -0.5f * MODEL_OUTPUTS * log_of(share);
            for (k = 0; k < MODEL_OUTPUTS; ++k) {
                const float shift = f == 0 ? 0.0f : row->shift[f - 1][k];
                const float z = (error[k] - shift) * model_unit[k] / row->std[k];
                log -= fall(z * z / share, k);
            }
            logs[f][i] = log;
            best = (f == 0 && i == 0) || log > best ? log : best;
        }
    }
    for (f = 0; f <= MODEL_FILTERS; ++f) {
        for (i = 0; i < MODEL_STRETCHES; ++i) {
            state->trust[f][i] *= exp_of_minus(best - logs[f][i]);
            sum += state->trust[f][i];
        }
    }
    for (f = 0; f <= MODEL_FILTERS; ++f) {
        for (i = 0; i < MODEL_STRETCHES; ++i) {
            state->trust[f][i] = (1.0f - SHARED) / sum * state->trust[f][i] +
                                 SHARED * model_prior[f * MODEL_STRETCHES + i];
        }
    }
}

/* One step of a Kalman filter, and one back towards the prior. */
static void learn(model_state *state, unsigned f, const float *psi, const float *error, float noise)
{
    const float forget = model_forget[f], fade = model_fade[f];
    float along[MODEL_DIRECTIONS], *restrict c = state->covariance[f];
    float spread, bound;
    unsigned i, j, k;
    multiply(c, psi, along);
    spread = product(psi, along) + noise;
    bound = FARTHEST * root(spread);
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        float *restrict weights = state->weights[f][k];
        const float step = within(error[k] - product(psi, weights), bound) / spread;
        for (i = 0; i < MODEL_DIRECTIONS; ++i) {
            const float learnt = weights[i] + step * along[i];
            weights[i] = learnt - fade * learnt;
        }
    }
    for (i = 0; i < MODEL_DIRECTIONS; ++i) {
        const float part = along[i] / spread;
        *c = *c - part * along[i];
        *c += forget * (1.0f - *c);
        for (j = i + 1, ++c; j < MODEL_DIRECTIONS; ++j, ++c) {
            const float left = *c - part * along[j];
            *c = left - forget * left;
        }
    }
}

int model_observe(model_state *state, const model_row *row, const float *y)
{
    float error[MODEL_OUTPUTS], noise = 0.0f;
    unsigned f, k;
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        if (size_of(y[k]) >= INFINITE) {
            return MODEL_BAD_LABEL;
        }
        if (size_of(row->std[k]) >= INFINITE) {
            return MODEL_BAD_ROW;
        }
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        const float std = row->std[k] > model_unit[k] ? row->std[k] : model_unit[k];
        const float off = y[k] - row->mean[k];
        if (off > MOST_OFF * std || off < -MOST_OFF * std) {
            return MODEL_FAR_LABEL;
        }
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        const float std = row->std[k] / model_unit[k];
        error[k] = within(y[k] - row->mean[k], MOST_APART * row->std[k]) / model_unit[k];
        noise += WITHIN / MODEL_OUTPUTS * std * std;
    }
    weigh(state, row, error);
    for (f = 0; f < MODEL_FILTERS; ++f) {
        learn(state, f, row->psi, error, noise);
    }
    for (k = 0; k < MODEL_OUTPUTS; ++k) {
        const int missed = y[k] < row->low[k] || y[k] > row->high[k];
        state->log_q[k] = within(state->log_q[k] + ETA * ((float)missed - ALPHA), MOST_LOG_Q);
    }
    ++state->labels;
    return MODEL_OK;
}
