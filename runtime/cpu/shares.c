/* The shares of a team's members: see shares.h. */
#include "shares.h"

static float clamp(float x, float least, float most) { return x < least ? least : x > most ? most : x; }

/* The fastest member of a pass has the speed 1 in it. A member without a rate had no work; it becomes faster, until it
 * gets some again. */
bool shares_learn(float *speed, const float *rate, int n) {
  const float SMOOTHING = 0.25f, STEP = 1.0f / 16, LEAST = 1.0f / 16, FAR = 0.25f;
  float fastest = 0;
  bool far = false;
  for (int i = 0; i < n; i++) fastest = rate[i] > fastest ? rate[i] : fastest;
  for (int i = 0; i < n && fastest > 0; i++) {
    float now = rate[i] > 0 ? rate[i] / fastest : 1, most = STEP * speed[i];
    speed[i] = clamp(speed[i] + clamp((now - speed[i]) * SMOOTHING, -most, most), LEAST, 1);
    far |= rate[i] > 0 && (now < (1 - FAR) * speed[i] || (1 - FAR) * now > speed[i]);
  }
  return far;
}

/* Equal members must get equal shares: where a phase has few items, a slightly smaller share is a whole item less. */
static float rounded(const float *speed, int i, float fastest) {
  const float NEARLY = 0.85f;
  return !speed || speed[i] >= NEARLY * fastest ? 1 : speed[i] / fastest;
}

void shares_divide(const float *speed, int n, uint64_t *bound) {
  float fastest = 0;
  double sum = 0, before = 0;
  for (int i = 0; speed && i < n; i++) fastest = speed[i] > fastest ? speed[i] : fastest;
  for (int i = 0; i < n; i++) sum += (double)rounded(speed, i, fastest);
  for (int i = 0; i < n; i++) {
    bound[i] = (uint64_t)(before / sum * (double)SHARES_WHOLE);
    before += (double)rounded(speed, i, fastest);
  }
  bound[n] = SHARES_WHOLE;
}
