/* Which rule a type has, by the oids of pg_type.dat: those below 16384 never change. */
#include "source/postgres/pg_rule.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Types of a rule of their own; all others are TEXT. */
static enum tide_pg_rule_kind scalar_kind(uint32_t oid)
{
    switch (oid) {
    case 16: /* bool */
        return TIDE_PG_RULE_BOOL;
    case 17: /* bytea */
        return TIDE_PG_RULE_BYTES;
    case 20: /* int8 */
    case 21: /* int2 */
    case 23: /* int4 */
    case 26: /* oid */
        return TIDE_PG_RULE_INTEGER;
    case 700: /* float4 */
    case 701: /* float8 */
        return TIDE_PG_RULE_REAL;
    case 1114: /* timestamp */
    case 1184: /* timestamptz */
        return TIDE_PG_RULE_TIMESTAMP;
    case 1700: /* numeric */
        return TIDE_PG_RULE_DECIMAL;
    case 114:  /* json */
    case 3802: /* jsonb */
        return TIDE_PG_RULE_JSON;
    default:
        return TIDE_PG_RULE_TEXT;
    }
}

struct array_type {
    uint32_t oid;
    uint32_t element;
};

/* Arrays of built-in base types and ranges, in the order of their oids. */
static const struct array_type array_types[] = {
    {143, 142},   /* xml */
    {199, 114},   /* json */
    {271, 5069},  /* xid8 */
    {629, 628},   /* line */
    {651, 650},   /* cidr */
    {719, 718},   /* circle */
    {775, 774},   /* macaddr8 */
    {791, 790},   /* money */
    {1000, 16},   /* bool */
    {1001, 17},   /* bytea */
    {1002, 18},   /* "char" */
    {1003, 19},   /* name */
    {1005, 21},   /* int2 */
    {1006, 22},   /* int2vector */
    {1007, 23},   /* int4 */
    {1008, 24},   /* regproc */
    {1009, 25},   /* text */
    {1010, 27},   /* tid */
    {1011, 28},   /* xid */
    {1012, 29},   /* cid */
    {1013, 30},   /* oidvector */
    {1014, 1042}, /* bpchar */
    {1015, 1043}, /* varchar */
    {1016, 20},   /* int8 */
    {1017, 600},  /* point */
    {1018, 601},  /* lseg */
    {1019, 602},  /* path */
    {1020, 603},  /* box */
    {1021, 700},  /* float4 */
    {1022, 701},  /* float8 */
    {1027, 604},  /* polygon */
    {1028, 26},   /* oid */
    {1034, 1033}, /* aclitem */
    {1040, 829},  /* macaddr */
    {1041, 869},  /* inet */
    {1115, 1114}, /* timestamp */
    {1182, 1082}, /* date */
    {1183, 1083}, /* time */
    {1185, 1184}, /* timestamptz */
    {1187, 1186}, /* interval */
    {1231, 1700}, /* numeric */
    {1270, 1266}, /* timetz */
    {1561, 1560}, /* bit */
    {1563, 1562}, /* varbit */
    {2201, 1790}, /* refcursor */
    {2207, 2202}, /* regprocedure */
    {2208, 2203}, /* regoper */
    {2209, 2204}, /* regoperator */
    {2210, 2205}, /* regclass */
    {2211, 2206}, /* regtype */
    {2949, 2970}, /* txid_snapshot */
    {2951, 2950}, /* uuid */
    {3221, 3220}, /* pg_lsn */
    {3643, 3614}, /* tsvector */
    {3644, 3642}, /* gtsvector */
    {3645, 3615}, /* tsquery */
    {3735, 3734}, /* regconfig */
    {3770, 3769}, /* regdictionary */
    {3807, 3802}, /* jsonb */
    {3905, 3904}, /* int4range */
    {3907, 3906}, /* numrange */
    {3909, 3908}, /* tsrange */
    {3911, 3910}, /* tstzrange */
    {3913, 3912}, /* daterange */
    {3927, 3926}, /* int8range */
    {4073, 4072}, /* jsonpath */
    {4090, 4089}, /* regnamespace */
    {4097, 4096}, /* regrole */
    {4192, 4191}, /* regcollation */
    {5039, 5038}, /* pg_snapshot */
    {6150, 4451}, /* int4multirange */
    {6151, 4532}, /* nummultirange */
    {6152, 4533}, /* tsmultirange */
    {6153, 4534}, /* tstzmultirange */
    {6155, 4535}, /* datemultirange */
    {6157, 4536}, /* int8multirange */
};

#define OID_BOX_ARRAY 1020 /* the only type whose elements are parted by another mark */

static struct tide_pg_rule array_rule(const struct array_type *type)
{
    return (struct tide_pg_rule){.kind = TIDE_PG_RULE_ARRAY,
                                 .element_kind = (uint8_t)scalar_kind(type->element),
                                 .delimiter = type->oid == OID_BOX_ARRAY ? ';' : ','};
}

struct tide_pg_rule tide_pg_rule_of(uint32_t value_oid, bool is_key)
{
    enum tide_pg_rule_kind kind = scalar_kind(value_oid);
    if (kind == TIDE_PG_RULE_JSON && is_key) {
        kind = TIDE_PG_RULE_TEXT;
    }
    for (size_t i = 0; i < COUNT(array_types) && !is_key; i++) {
        if (array_types[i].oid == value_oid) {
            return array_rule(&array_types[i]);
        }
    }
    return (struct tide_pg_rule){.kind = (uint8_t)kind};
}
