/* The hot path of `features.py` and `scorer.py` in C: one text to a signed gain.
 *
 * The same hashes (CRC-32), the same sums in the same order and no fused operations, so that each
 * number is that of the Python code to the last bit; a property test holds both together. Needs
 * nothing but a C library. Compile with -ffp-contract=off, and never with -ffast-math.
 *
 * Memory: reads `size` bytes of `data` and the arrays of the model, writes one `Found`; the stack
 * holds 40 KB. No allocation, no state besides the tables that `domicile_prepare` fills.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BUCKETS 65536
#define STRUCTURE 22
#define TEXT 18 /* of STRUCTURE, how many are of the text */
#define INPUTS (2 + STRUCTURE)
#define ROWS 9 /* the linear part and at most eight directions */
#define UNIT 1048576.0
#define WEIGHT 1073741824.0
#define TOP (3.0 * UNIT)
#define LONGEST 8192 /* bytes of a text; what is read of one is shorter */
#define IN_WORD (1ull << 48)

typedef struct {
    const int8_t *tables;  /* BUCKETS pairs: weak, strong */
    const uint8_t *known;  /* BUCKETS flags, 0 or 1 */
    double scales[2], offsets[2], intercept;
    double centre[INPUTS], inverse[INPUTS]; /* to z-scores times UNIT */
    int64_t rows[ROWS][INPUTS];             /* linear, then directions, times WEIGHT */
    double squares[ROWS];                   /* of each direction */
    int32_t inputs, rows_used;              /* how many of INPUTS and of ROWS count */
} Model;

typedef struct {
    double gain, distance, known, wide, distinct;
    double inputs[INPUTS]; /* both base heads, then the structure */
    int32_t words, buckets;
} Found;

typedef struct {
    uint64_t digits, math, brackets, letters, lines, high, latex;
} Counts;

typedef struct {
    int64_t weak, strong;
    int32_t words, distinct, known, buckets;
    Counts counts;
    uint8_t word_seen[BUCKETS / 8], seen[BUCKETS / 8];
    uint16_t edges[LONGEST + 2]; /* where words begin and end, in turn */
} Bag;

static uint32_t CRC[4][256]; /* of one byte, and of one byte before one, two and three zeros */
static uint64_t LOW[256], HIGH[256]; /* four counters of 16 bits in one number */

static void mark(uint64_t *table, const char *members, int lane) {
    for (; *members; members++) table[(uint8_t)*members] += 1ull << (16 * lane);
}

/* Fills the tables; called once, before anything else. Returns the sizes of both structs. */
int64_t domicile_prepare(void) {
    memset(LOW, 0, sizeof LOW);
    memset(HIGH, 0, sizeof HIGH);
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++) rest = (rest >> 1) ^ (rest & 1 ? 0xEDB88320u : 0);
        CRC[0][byte] = rest;
        int letter = (byte >= 'a' && byte <= 'z') || byte >= 128;
        int digit = byte >= '0' && byte <= '9';
        if (letter || digit || (byte && strchr("\\$=%^", (int)byte))) HIGH[byte] += IN_WORD;
        if (letter) LOW[byte] += 1ull << 48;
        if (byte >= 128) HIGH[byte] += 1ull << 16;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int zeros = 1; zeros < 4; zeros++) {
            uint32_t rest = CRC[zeros - 1][byte];
            CRC[zeros][byte] = (rest >> 8) ^ CRC[0][rest & 255];
        }
    mark(LOW, "0123456789", 0);
    mark(LOW, "=+^*/\\$<>|", 1);
    mark(LOW, "()[]{}", 2);
    mark(HIGH, "\n", 0);
    mark(HIGH, "\\$", 2);
    return (int64_t)sizeof(Model) * 100000 + (int64_t)sizeof(Found);
}

/* No text is so long that a counter of 16 bits could overflow. */
static Counts counts_of(uint64_t low, uint64_t high) {
    Counts counts = {
        low & 0xFFFF,  low >> 16 & 0xFFFF,  low >> 32 & 0xFFFF,  low >> 48 & 0xFFFF,
        high & 0xFFFF, high >> 16 & 0xFFFF, high >> 32 & 0xFFFF,
    };
    return counts;
}

static Counts counted(const uint8_t *data, int64_t size) {
    uint64_t low = 0, high = 0;
    for (int64_t at = 0; at < size; at++) {
        low += LOW[data[at]];
        high += HIGH[data[at]];
    }
    return counts_of(low, high);
}

static void count_bucket(Bag *bag, const Model *model, uint32_t bucket) {
    uint8_t bit = (uint8_t)(1u << (bucket & 7));
    if (bag->seen[bucket >> 3] & bit) return;
    bag->seen[bucket >> 3] |= bit;
    bag->buckets++;
    bag->weak += model->tables[2 * bucket];
    bag->strong += model->tables[2 * bucket + 1];
}

static void count_word(Bag *bag, const Model *model, uint32_t bucket) {
    uint8_t bit = (uint8_t)(1u << (bucket & 7));
    bag->words++;
    if (bag->word_seen[bucket >> 3] & bit) return;
    bag->word_seen[bucket >> 3] |= bit;
    bag->distinct++;
    bag->known += model->known[bucket];
    count_bucket(bag, model, bucket);
}

/* Counts bytes and finds the edges of words, without a branch: half of them would be guessed wrong.
 * Returns how many edges there are, an even number. */
static int32_t edges(Bag *bag, const uint8_t *data, int64_t size) {
    uint64_t low = 0, high = 0, inside = 0;
    int32_t found = 0;
    for (int64_t at = 0; at < size; at++) {
        uint64_t more = HIGH[data[at]];
        low += LOW[data[at]];
        high += more;
        bag->edges[found] = (uint16_t)at;
        found += (more ^ inside) >= IN_WORD;
        inside = more & IN_WORD;
    }
    bag->edges[found] = (uint16_t)size;
    bag->counts = counts_of(low, high);
    return found + (found & 1);
}

static uint32_t four(uint32_t rest) {
    return CRC[3][rest & 255] ^ CRC[2][rest >> 8 & 255] ^ CRC[1][rest >> 16 & 255] ^
           CRC[0][rest >> 24];
}

static void bagged(Bag *bag, const Model *model, const uint8_t *data, int64_t size) {
    int32_t count = edges(bag, data, size);
    uint32_t before = 0;
    memset(bag, 0, offsetof(Bag, counts));
    memset(bag->word_seen, 0, sizeof bag->word_seen);
    memset(bag->seen, 0, sizeof bag->seen);
    for (int32_t edge = 0; edge < count; edge += 2) {
        const uint8_t *at = data + bag->edges[edge], *end = data + bag->edges[edge + 1];
        /* The hash of a word, and of the pair, which goes on from that of the word before. */
        uint32_t own = ~0u, pair = ~before;
        for (; end - at >= 4; at += 4) {
            uint32_t next = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                            (uint32_t)at[3] << 24;
            own = four(own ^ next);
            pair = four(pair ^ next);
        }
        for (; at < end; at++) {
            own = (own >> 8) ^ CRC[0][(own ^ *at) & 255];
            pair = (pair >> 8) ^ CRC[0][(pair ^ *at) & 255];
        }
        before = ~own;
        if (edge) count_bucket(bag, model, ~pair & (BUCKETS - 1));
        count_word(bag, model, before & (BUCKETS - 1));
    }
}

/* The first place of `what`, by its byte number `rare`: the search for one byte is fast. */
static const uint8_t *find(const uint8_t *data, int64_t size, const char *what, int64_t rare) {
    int64_t length = (int64_t)strlen(what);
    const uint8_t *at = data + rare, *last = data + size - length + rare;
    for (; at <= last; at++) {
        at = memchr(at, what[rare], (size_t)(last - at + 1));
        if (at == NULL) return NULL;
        if (memcmp(at - rare, what, (size_t)length) == 0) return at - rare;
    }
    return NULL;
}

static int has(const uint8_t *data, int64_t size, const char *what, int64_t rare) {
    return size > 0 && find(data, size, what, rare) != NULL;
}

static int64_t sentences(const uint8_t *data, int64_t size) {
    int64_t found = 0;
    const uint8_t *end = data + size;
    for (const uint8_t *at = data; (at = find(at, end - at, ". ", 0)) != NULL; at += 2) found++;
    return found;
}

static void shaped(Found *found, const Bag *bag, const uint8_t *data, int64_t bytes) {
    const uint8_t *cut = find(data, bytes, "\na. ", 0);
    int64_t stem = cut ? cut - data : bytes, begin = cut ? stem + 4 : bytes;
    const uint8_t *options = data + begin;
    int64_t rest = bytes - begin;
    Counts second = counted(options, rest), all = bag->counts;
    uint64_t choices = rest ? second.lines + 1 : 0;
    double size = (double)(bytes + 1), count = (double)(bag->words ? bag->words : 1);
    double *out = found->inputs + 2;
    found->words = bag->words;
    found->buckets = bag->buckets;
    found->distinct = (double)bag->distinct / count;
    found->known = bag->distinct ? (double)bag->known / (double)bag->distinct : 0.0;
    found->wide = bytes ? (double)all.high / (double)bytes : 0.0;
    *out++ = log(size);
    *out++ = log((double)(stem + 1));
    *out++ = choices ? log((double)rest / (double)choices) : 0.0;
    *out++ = (double)choices;
    *out++ = (double)all.digits / size;
    *out++ = (double)second.digits / (double)(rest + 1);
    *out++ = (double)all.math / size;
    *out++ = (double)all.brackets / size;
    *out++ = (double)all.letters / count;
    *out++ = found->distinct;
    *out++ = log((double)(sentences(data, stem) + 1));
    *out++ = log((double)(all.lines + 1));
    *out++ = has(data, stem, "__", 0);
    *out++ = has(data, stem, "?", 0);
    *out++ = has(data, stem, "except", 1) || has(data, stem, " not ", 1) ||
             has(data, stem, " least ", 1);
    *out++ = has(data, stem, "statement", 6);
    *out++ = has(options, rest, "all of the", 5) || has(options, rest, "none of", 6);
    *out++ = all.latex ? 1.0 : 0.0;
}

static double along(const int64_t *row, const int64_t *z, int32_t size) {
    int64_t sum = 0;
    for (int32_t i = 0; i < size; i++) sum += row[i] * z[i];
    return (double)sum * (1.0 / (UNIT * WEIGHT));
}

static void scored(Found *found, const Model *model, const Bag *bag) {
    int64_t whole[INPUTS];
    double z[INPUTS], distance = 0.0, norm = bag->buckets ? sqrt((double)bag->buckets) : 1.0;
    found->inputs[0] = (double)bag->weak * model->scales[0] / norm + model->offsets[0];
    found->inputs[1] = (double)bag->strong * model->scales[1] / norm + model->offsets[1];
    for (int32_t i = 0; i < model->inputs; i++) {
        z[i] = (found->inputs[i] - model->centre[i]) * model->inverse[i];
        /* As Python compares: what is no number is clipped to the top. */
        whole[i] = (int64_t)(z[i] < TOP ? (z[i] > -TOP ? z[i] : -TOP) : TOP);
    }
    for (int32_t i = 2; i < 2 + TEXT; i++) distance += z[i] * z[i];
    found->distance = distance * (1.0 / (UNIT * UNIT));
    double gain = model->intercept + along(model->rows[0], whole, model->inputs);
    for (int32_t r = 1; r < model->rows_used; r++) {
        double size = along(model->rows[r], whole, model->inputs);
        gain += model->squares[r - 1] * size * size;
    }
    found->gain = gain;
}

/* `data`: lower-case UTF-8, at most LONGEST bytes; `calls`: the four fields of the call. Returns 0,
 * or -1 for a longer text, of which nothing is written. */
int32_t domicile_measure(const Model *model, const char *data, int64_t size, const double *calls,
                         Found *found) {
    Bag bag;
    if (size < 0 || size > LONGEST) return -1;
    bagged(&bag, model, (const uint8_t *)data, size);
    shaped(found, &bag, (const uint8_t *)data, size);
    for (int i = 0; i < STRUCTURE - TEXT; i++) found->inputs[2 + TEXT + i] = calls[i];
    scored(found, model, &bag);
    return 0;
}
