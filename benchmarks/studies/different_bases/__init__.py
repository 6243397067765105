"""Study of the phone: do agents with other stage-1 seeds or data give a vote more than clones?"""
