// How the examples in C print texts and fields.

#ifndef PRINT_H
#define PRINT_H

#include <inttypes.h>
#include <stdio.h>
#include <tapeline.h>

static void print_text(tapeline_text text) { printf("%.*s", (int)text.len, text.data); }

static void print_value(const tapeline_field *field, const tapeline_dictionary *dictionary) {
    tapeline_text text;
    switch (field->value.kind) {
    case TAPELINE_VALUE_INT: printf("%" PRId64, field->value.data.integer); break;
    case TAPELINE_VALUE_UINT: printf("%" PRIu64, field->value.data.whole); break;
    case TAPELINE_VALUE_DOUBLE: printf("%.15g", field->value.data.number); break;
    case TAPELINE_VALUE_REAL: printf("%.15g", field->value.data.real.number); break;
    case TAPELINE_VALUE_TEXT: print_text(field->value.data.text); break;
    case TAPELINE_VALUE_ENUM:
        if (tapeline_enum_display(dictionary, field->fid, field->value.data.whole, &text) == TAPELINE_OK)
            print_text(text);
        else
            printf("%" PRIu64, field->value.data.whole);
        break;
    case TAPELINE_VALUE_TIME:
        printf("%02d:%02d:%02d.%09" PRIu32, field->value.data.time.hour, field->value.data.time.minute,
               field->value.data.time.second, field->value.data.time.nanosecond);
        break;
    case TAPELINE_VALUE_DATE:
        printf("%04d-%02d-%02d", field->value.data.time.year, field->value.data.time.month,
               field->value.data.time.day);
        break;
    case TAPELINE_VALUE_BLANK: break;
    default: printf("<%zu bytes>", field->bytes.len);
    }
}

// Prints the fields of a message as " NAME=value"; returns 0 after an error.
static int print_fields(tapeline_bytes message, const tapeline_dictionary *dictionary) {
    tapeline_fields fields;
    tapeline_field field;
    tapeline_code code = tapeline_fields_open(message.data, message.len, dictionary, &fields);
    if (code == TAPELINE_NO_FIELDS) return 1;
    if (code != TAPELINE_OK) return 0;
    while ((code = tapeline_fields_next(&fields, &field)) == TAPELINE_FIELD) {
        printf(" ");
        if (field.name.len > 0)
            print_text(field.name);
        else
            printf("%d", field.fid);
        printf("=");
        print_value(&field, dictionary);
    }
    return code == TAPELINE_ENDED;
}

#endif
