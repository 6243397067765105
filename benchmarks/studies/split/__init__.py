"""Study of split facts: is talk needed, and does the edge learner find who has to talk to whom?"""
