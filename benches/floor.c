/* The floor: how fast C can walk a list of message dicts and add up what the flat counter adds up.
 *
 * It reads the same fields (role, content as a string or as parts, reasoning_content, tool_calls with id, type and
 * function, tool_call_id), takes lengths in constant time, checks next to nothing and supports nothing else: no
 * objects, no other message forms, no errors with a path. No product could do less and give the same number.
 *
 * One pass over each dict with PyDict_Next; a key is known by identity (literals are interned) or, when it came out
 * of a JSON parser, by length and bytes. Five look-ups by key take nearly twice as long.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

enum { OVERHEAD = 12, MEDIA_TOKENS = 256 };

static PyObject *s_role, *s_content, *s_reasoning, *s_calls, *s_call_id, *s_id, *s_type, *s_function, *s_name,
    *s_arguments, *s_text;

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define IS(key, interned, literal)                                                                                 \
    ((key) == (interned) ||                                                                                        \
     (PyUnicode_GET_LENGTH(key) == sizeof(literal) - 1 && PyUnicode_IS_COMPACT_ASCII(key) &&                       \
      memcmp(PyUnicode_DATA(key), literal, sizeof(literal) - 1) == 0))

static inline Py_ssize_t length(PyObject *value) {
    return LIKELY(PyUnicode_Check(value)) ? PyUnicode_GET_LENGTH(value) : 0;
}

/* Characters of a list of parts; media parts are added to *media. */
static Py_ssize_t parts(PyObject *list, Py_ssize_t *media) {
    Py_ssize_t chars = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *part = PyList_GET_ITEM(list, i), *key, *value;
        Py_ssize_t at = 0;
        if (!PyDict_Check(part)) continue;
        while (PyDict_Next(part, &at, &key, &value)) {
            if (IS(key, s_text, "text"))
                chars += length(value);
            else if (IS(key, s_type, "type"))
                *media += PyUnicode_Check(value) && PyUnicode_GET_LENGTH(value) == 9 &&
                          memcmp(PyUnicode_DATA(value), "image_url", 9) == 0;
        }
    }
    return chars;
}

static Py_ssize_t calls(PyObject *list) {
    Py_ssize_t chars = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *call = PyList_GET_ITEM(list, i), *key, *value;
        Py_ssize_t at = 0;
        if (!PyDict_Check(call)) continue;
        while (PyDict_Next(call, &at, &key, &value)) {
            if (IS(key, s_function, "function")) {
                PyObject *inner_key, *inner_value;
                Py_ssize_t inner = 0;
                if (!PyDict_Check(value)) continue;
                while (PyDict_Next(value, &inner, &inner_key, &inner_value))
                    if (IS(inner_key, s_arguments, "arguments") || IS(inner_key, s_name, "name"))
                        chars += length(inner_value);
            } else if (IS(key, s_id, "id") || IS(key, s_type, "type")) {
                chars += length(value);
            }
        }
    }
    return chars;
}

/* Tokens of one message, 2.5 characters per token, rounded up; -1 if it is no dict with a role. */
static inline Py_ssize_t tokens(PyObject *message) {
    PyObject *key, *value, *role = NULL;
    Py_ssize_t at = 0, chars = OVERHEAD, media = 0;
    if (!PyDict_Check(message)) return -1;
    while (PyDict_Next(message, &at, &key, &value)) {
        if (IS(key, s_role, "role"))
            role = value;
        else if (IS(key, s_content, "content"))
            chars += LIKELY(PyUnicode_Check(value)) ? PyUnicode_GET_LENGTH(value)
                     : PyList_Check(value)          ? parts(value, &media)
                                                    : 0;
        else if (IS(key, s_call_id, "tool_call_id") || IS(key, s_reasoning, "reasoning_content"))
            chars += length(value);
        else if (IS(key, s_calls, "tool_calls") && PyList_Check(value))
            chars += calls(value);
    }
    return role == NULL ? -1 : (2 * chars + 4) / 5 + media * MEDIA_TOKENS;
}

static PyObject *bad_message(Py_ssize_t index) {
    return PyErr_Format(PyExc_ValueError, "messages[%zd]: not a dict with a role", index);
}

static PyObject *count(PyObject *Py_UNUSED(module), PyObject *messages) {
    Py_ssize_t total = 0;
    if (!PyList_Check(messages)) return PyErr_Format(PyExc_TypeError, "expected a list");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(messages); i++) {
        Py_ssize_t one = tokens(PyList_GET_ITEM(messages, i));
        if (one < 0) return bad_message(i);
        total += one;
    }
    return PyLong_FromSsize_t(total);
}

/* The first message of the longest suffix within a budget: the least that finding a tail can cost. */
static PyObject *suffix(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *messages;
    Py_ssize_t budget, i;
    if (!PyArg_ParseTuple(arguments, "O!n", &PyList_Type, &messages, &budget)) return NULL;
    for (i = PyList_GET_SIZE(messages); i > 0; i--) {
        Py_ssize_t one = tokens(PyList_GET_ITEM(messages, i - 1));
        if (one < 0) return bad_message(i - 1);
        if ((budget -= one) < 0) break;
    }
    return PyLong_FromSsize_t(i);
}

/* The newest user message, -1 if there is none: the least that looking back for the task can cost. */
static PyObject *newest_user(PyObject *Py_UNUSED(module), PyObject *messages) {
    Py_ssize_t i;
    if (!PyList_Check(messages)) return PyErr_Format(PyExc_TypeError, "expected a list");
    for (i = PyList_GET_SIZE(messages) - 1; i >= 0; i--) {
        PyObject *message = PyList_GET_ITEM(messages, i);
        PyObject *role = PyDict_Check(message) ? PyDict_GetItemWithError(message, s_role) : NULL;
        if (role == NULL) return PyErr_Occurred() ? NULL : bad_message(i);
        if (PyUnicode_Check(role) && PyUnicode_GET_LENGTH(role) == 4 && memcmp(PyUnicode_DATA(role), "user", 4) == 0)
            break;
    }
    return PyLong_FromSsize_t(i);
}

/* Newlines in a list of strings: the least that saying how many lines a text has can cost. Sums of 255 characters fit
 * the characters' own type, so that compilers make vector code of it. */
#define COUNT_NEWLINES(type)                                                                                       \
    for (Py_ssize_t start = 0; start < size; start += 255) {                                                       \
        const type *part = (const type *)PyUnicode_DATA(text) + start;                                             \
        Py_ssize_t stop = size - start < 255 ? size - start : 255;                                                 \
        type found = 0;                                                                                            \
        for (Py_ssize_t at = 0; at < stop; at++) found += part[at] == '\n';                                        \
        total += found;                                                                                            \
    }

static PyObject *newlines(PyObject *Py_UNUSED(module), PyObject *texts) {
    Py_ssize_t total = 0;
    if (!PyList_Check(texts)) return PyErr_Format(PyExc_TypeError, "expected a list");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(texts); i++) {
        PyObject *text = PyList_GET_ITEM(texts, i);
        if (!PyUnicode_Check(text)) return PyErr_Format(PyExc_TypeError, "expected a list of strings");
        Py_ssize_t size = PyUnicode_GET_LENGTH(text);
        switch (PyUnicode_KIND(text)) {
        case PyUnicode_1BYTE_KIND: COUNT_NEWLINES(Py_UCS1) break;
        case PyUnicode_2BYTE_KIND: COUNT_NEWLINES(Py_UCS2) break;
        default: COUNT_NEWLINES(Py_UCS4)
        }
    }
    return PyLong_FromSsize_t(total);
}

static PyMethodDef methods[] = {
    {"count", count, METH_O, "Tokens of a list of message dicts."},
    {"suffix", suffix, METH_VARARGS, "Start of the longest suffix within a budget."},
    {"newest_user", newest_user, METH_O, "Index of the newest user message."},
    {"newlines", newlines, METH_O, "Newlines in a list of strings."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_floor", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__floor(void) {
    struct {
        PyObject **slot;
        const char *text;
    } names[] = {
        {&s_role, "role"},       {&s_content, "content"}, {&s_reasoning, "reasoning_content"},
        {&s_calls, "tool_calls"}, {&s_call_id, "tool_call_id"}, {&s_id, "id"},
        {&s_type, "type"},       {&s_function, "function"}, {&s_name, "name"},
        {&s_arguments, "arguments"}, {&s_text, "text"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*names[i].slot = PyUnicode_InternFromString(names[i].text)) == NULL) return NULL;
    return PyModule_Create(&module);
}
