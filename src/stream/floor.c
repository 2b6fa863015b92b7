#include "stream/floor.h"

bool tide_watermark_update(struct tide_watermark *watermark, struct tide_lane *const *lanes,
                           tide_lane_set set)
{
    const struct tide_lane *least = NULL;
    for (tide_lane_set rest = set; rest != 0; rest &= rest - 1) {
        const struct tide_lane *lane = lanes[__builtin_ctzll(rest)];
        if (least == NULL || lane->build_position < least->build_position) {
            least = lane;
        }
    }
    if (least == NULL || least->build_position <= watermark->build) {
        return false;
    }
    watermark->build = least->build_position;
    watermark->position = least->position;
    return true;
}
